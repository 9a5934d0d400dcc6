/** For those who read an address of ClickHouse and connect to nothing. */
export { clickHouseUrlFault, hostsOf } from './clickhouse/addresses.js';
