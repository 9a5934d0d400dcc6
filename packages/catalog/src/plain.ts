/** The catalog for browsers and producers: all but prices and the schemas of the API. It brings no zod. */
export * from './alert.js';
export * from './amount-format.js';
export * from './amounts.js';
export * from './api/exact-json.js';
export * from './api/request.js';
export * from './calendar.js';
export * from './decimal.js';
export * from './dimensions.js';
export * from './event.js';
export * from './event-json.js';
export * from './metrics-csv.js';
export * from './property.js';
export * from './queue.js';
export * from './rejection.js';
export * from './waiting.js';
