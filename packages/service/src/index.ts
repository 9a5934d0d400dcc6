export { type AdminPages, type AdminServer, type Health, openAdminServer } from './admin-server.js';
export {
  adminPortVariable,
  clickHouseUrlVariable,
  EnvError,
  readEnvironment,
  redisUrlVariable,
  serverVariables,
  urlVariable,
  warehouseOptions,
  wholeNumberVariable,
} from './environment.js';
export { onceAMinute } from './log.js';
export { Outage } from './outage.js';
export { runService, type Service, STOP_DEADLINE_MS } from './run-service.js';
export { connectRedis, listenError, prepareClickHouse, StartError, startError } from './servers.js';
export { abortable, inTime, type RetryOptions, retryUntilDone } from './waiting.js';
