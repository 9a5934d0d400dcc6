export { type AdminPages, type AdminServer, type Health, openAdminServer } from './admin-server.js';
export { DrainingServer } from './draining.js';
export {
  adminPortVariable,
  clickHouseUrlVariable,
  EnvError,
  processVariables,
  queueVariables,
  readEnvironment,
  redisUrlVariable,
  serverVariables,
  urlVariable,
  warehouseOptions,
  wholeNumberVariable,
} from './environment.js';
export { collectGarbageLate } from './garbage.js';
export { onceAMinute } from './log.js';
export { Outage } from './outage.js';
export { runService, type Service, STOP_DEADLINE_MS } from './run-service.js';
export { connectRedis, isRedisFull, listenError, StartError, startError } from './servers.js';
export { abortable, inTime, type RetryOptions, retryUntilDone, shared } from './waiting.js';
