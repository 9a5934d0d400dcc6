/**
 * What a program needs of the catalog to ask the API, and to show what it answers: all but prices and schemas. It brings no zod, which
 * takes Node longer to load than everything else that is loaded before a request.
 */
export * from './amount-format.js';
export * from './api/exact-json.js';
export * from './api/excluding.js';
export * from './api/limits.js';
export * from './calendar.js';
export * from './caller.js';
export * from './events.js';
export * from './group-by.js';
export * from './metrics-csv.js';
export * from './period.js';
export * from './retry-after.js';
