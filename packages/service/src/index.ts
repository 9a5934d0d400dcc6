export { type AdminPages, type AdminServer, type Health, openAdminServer } from './admin-server.js';
export { DrainingServer } from './draining.js';
export {
  adminPortVariable,
  clickHouseUrlVariable,
  constant,
  constantsVariable,
  EnvError,
  priceBookVariable,
  processVariables,
  queueVariables,
  readEnvironment,
  redisUrlVariable,
  serverVariables,
  statementMemoryVariable,
  urlVariable,
  warehouseOptions,
  wholeNumberVariable,
} from './environment.js';
export { onceAMinute } from './log.js';
export { Outage } from './outage.js';
export { collectGarbageLate, runService, type Service, STOP_DEADLINE_MS } from './run-service.js';
export { connectRedis, isRedisFull, listenError, StartError, startError, warnOfReplicas } from './servers.js';
export { abortable, inTime, type RetryOptions, retryUntilDone, shared } from './waiting.js';
