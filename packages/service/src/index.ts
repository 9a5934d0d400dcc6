export * from './admin-server.js';
export * from './draining.js';
export * from './environment.js';
export * from './job.js';
export { Outage, onceAMinute } from './log.js';
export * from './run-service.js';
export * from './servers.js';
export * from './start-error.js';
export * from './waiting.js';
