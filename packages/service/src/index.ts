export { type AdminPages, type AdminServer, type Health, openAdminServer } from './admin-server.js';
export {
  adminPortVariable,
  EnvError,
  readEnvironment,
  serverVariables,
  urlVariable,
  warehouseOptions,
  wholeNumberVariable,
} from './environment.js';
export { Outage } from './outage.js';
export { runService, type Service } from './run-service.js';
export { connectRedis, prepareClickHouse } from './servers.js';
export { StartError, startError } from './start-error.js';
export { STOP_DEADLINE_MS } from './stop-request.js';
