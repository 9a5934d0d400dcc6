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
export { inTime } from './in-time.js';
export { Outage } from './outage.js';
export { runService, type Service } from './run-service.js';
export { connectRedis, prepareClickHouse } from './servers.js';
export { listenError, StartError, startError } from './start-error.js';
export { STOP_DEADLINE_MS } from './stop-request.js';
