export { ROLES, type Role } from '@meterline/catalog';
export { type Account, AccountDirectory } from './account-directory.js';
export { parseToken } from './api-key.js';
export { type ApiKey, ApiKeyStore, type CreatedApiKey, type NewApiKey } from './api-key-store.js';
export { moreTelling, type RedisFailure, redisFailureKind } from './redis-failure.js';
export { redisUrlFault } from './redis-url.js';

/** What Meterline's own keys in Redis begin with; BullMQ's begin with `bull`. */
export const REDIS_PREFIX = 'meterline';
