/** What a producer needs of the catalog: events and the queue. It brings no zod and no date-fns. */
export * from './decimal.js';
export * from './dimensions.js';
export * from './event.js';
export * from './event-schema.js';
export * from './queue.js';
export * from './rejection.js';
export * from './timestamp.js';
