export { ROLES, type Role } from '@meterline/catalog';
export { type Account, AccountDirectory } from './accounts.js';
export { type ApiKey, ApiKeyStore, type CreatedApiKey, type NewApiKey, parseToken } from './api-keys.js';
export { moreInformative, REDIS_PREFIX, type RedisFailure, redisFailureKind, redisUrlFault } from './redis.js';
