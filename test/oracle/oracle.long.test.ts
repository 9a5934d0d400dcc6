import './oracle.it.test.js';
