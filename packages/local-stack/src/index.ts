export { type RunningClickHouse, startClickHouse } from './engine/clickhouse.js';
export { CLUSTER, FREE_SPACE, type Shard } from './engine/clickhouse-config.js';
export { DataDirectory } from './engine/data-directory.js';
export type { RunningServer } from './engine/host-process.js';
export { type LocalStack, startLocalStack } from './engine/local-stack.js';
export { findFreePort } from './engine/ports.js';
export { type RunningRedis, startRedis } from './engine/redis.js';
export { LocalStackError } from './errors.js';
export { NODE_OPTIONS } from './start/services.js';
