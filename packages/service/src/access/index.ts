/** Connects to Redis, and stores API keys and accounts there. */
export {
  KEY_ROLES,
  type KeyRole,
  PLATFORM_ROLES,
  type PlatformRole,
  ROLES,
  type Role,
} from '@meterline/catalog';
export * from './accounts.js';
export {
  type ApiKey,
  ApiKeyExpired,
  ApiKeyStore,
  type CreatedApiKey,
  MAX_KEYS_OF_ACCOUNT,
  type NewApiKey,
  type OnMalformedKey,
  parseToken,
  TooManyApiKeys,
} from './api-keys.js';
export * from './redis.js';
export { type RedisStatus, readRedisStatus } from './redis-status.js';
