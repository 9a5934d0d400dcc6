import './shards.it.test.js';
