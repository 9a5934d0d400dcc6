import './retention.it.test.js';
