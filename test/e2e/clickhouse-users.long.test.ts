import './clickhouse-users.it.test.js';
