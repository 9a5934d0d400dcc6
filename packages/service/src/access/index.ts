/** Meterline's Redis: connections to it, and the API keys and accounts in it. */
export { KEY_ROLES, type KeyRole, ROLES, type Role } from '@meterline/catalog';
export { type Account, AccountDirectory } from './accounts.js';
export { type ApiKey, parseToken } from './api-key.js';
export {
  ApiKeyExpired,
  ApiKeyStore,
  type CreatedApiKey,
  type NewApiKey,
  type OnMalformedKey,
  TooManyApiKeys,
} from './api-keys.js';
export {
  createRedisClient,
  leaveConnection,
  moreInformative,
  REDIS_PREFIX,
  type RedisClient,
  type RedisFailure,
  redisFailureKind,
} from './redis.js';
