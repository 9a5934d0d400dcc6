import './stored-pages.it.test.js';
