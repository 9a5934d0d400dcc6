import './interleavings.it.test.js';
