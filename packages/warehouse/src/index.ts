export { createWarehouse, type Warehouse, type WarehouseOptions } from './client.js';
export { isContentError } from './errors.js';
export { MIGRATIONS_DIRECTORY, MigrationError } from './migrations.js';
export { migrate } from './migrator.js';
export {
  STATEMENT_OUTCOMES,
  type StatementEnd,
  type StatementObserver,
  type StatementOutcome,
} from './observation.js';
export { checkConnection } from './statements/check-connection.js';
export type { PreparedInsert } from './statements/insert-block.js';
export * from './statements/metrics.js';
export { PriceBookConflictError, registerPriceBook } from './statements/price-books.js';
export { insertRejectedEvents, prepareRejectedEvents, type RejectedEvent } from './statements/rejected-events.js';
export { readResourceTypes, resourceTypesStatement } from './statements/resource-types.js';
export type { Selection } from './statements/selection.js';
export { insertUsageEvents, type PricedEvent, prepareUsageEvents } from './statements/usage-events.js';
