import './large-rows-orders.it.test.js';
