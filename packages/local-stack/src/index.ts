export type { RunningClickHouse } from './clickhouse.js';
export { CLUSTER, FREE_SPACE, type Shard } from './clickhouse-config.js';
export { findFreePort, isPortFree } from './ports.js';
export { type RedisUser, redisUrlOf } from './redis.js';
export { type RunningServer, watched } from './server-process.js';
export { type Servers, startServers } from './servers.js';
export { NODE_OPTIONS } from './start/services.js';
