/** Meterline's Redis: connections to it, and the API keys and accounts in it. */
export { KEY_ROLES, type KeyRole, ROLES, type Role } from '@meterline/catalog';
export * from './accounts.js';
export { type ApiKey, parseToken } from './api-key.js';
export * from './api-keys.js';
export * from './redis.js';
