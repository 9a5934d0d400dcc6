export { KEY_ROLES, type KeyRole, ROLES, type Role } from '@meterline/catalog';
export { type Account, AccountDirectory } from './accounts.js';
export { AnswerStamps, type Stamps } from './answer-stamps.js';
export type { ApiKey } from './api-key-record.js';
export { parseToken } from './api-key-text.js';
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
  prefixIn,
  REDIS_PREFIX,
  type RedisClient,
  type RedisFailure,
  redisFailureKind,
  serversOf,
} from './redis.js';
export { runScript, type Script, scriptOf } from './script.js';
