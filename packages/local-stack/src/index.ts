export { RedisUnavailableError } from '../hosts/redis-binary.js';
export { type ClickHouseOptions, pingClickHouse, startClickHouse } from './clickhouse.js';
export { type DirectoryLock, lockDirectory } from './directory-lock.js';
export { LocalStackError, type LocalStackErrorCode } from './errors.js';
export { type LocalStack, type LocalStackOptions, startLocalStack } from './local-stack.js';
export { findFreePort, isPortFree } from './ports.js';
export { identifyProcess, isRunning, type ProcessIdentity } from './process-identity.js';
export { pingRedis, type RedisOptions, startRedis } from './redis.js';
export type { RunningClickHouse, RunningRedis, RunningServer, ServerExit } from './running-server.js';
