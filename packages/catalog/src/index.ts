/** Exports the whole catalog, for services. `@meterline/catalog/plain` exports the parts that need no zod. */
export * from './api/alert-responses.js';
export * from './api/alerts.js';
export * from './api/parameters.js';
export type * from './api/queries.js';
export * from './api/responses.js';
export * from './api/views.js';
export * from './catalog-file.js';
export * from './plain.js';
export * from './price-book.js';
