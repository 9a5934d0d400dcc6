/** The whole catalog, for services. What needs no schema is in `@meterline/catalog/plain` too, without zod. */
export * from './api/alert-responses.js';
export * from './api/alerts.js';
export * from './api/parameters.js';
export type * from './api/queries.js';
export * from './api/responses.js';
export * from './plain.js';
export * from './price-book.js';
