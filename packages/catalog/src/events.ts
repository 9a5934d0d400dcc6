/** What a producer needs of the catalog: events, the queue and the address of its Redis. It brings no zod. */
export * from './account-path.js';
export * from './decimal.js';
export * from './dimensions.js';
export * from './event.js';
export * from './event-schema.js';
export * from './queue.js';
export * from './queue-shards.js';
export * from './redis-address.js';
export * from './redis-servers.js';
export * from './rejection.js';
export * from './timestamp.js';
