import './fuzz.it.test.js';
