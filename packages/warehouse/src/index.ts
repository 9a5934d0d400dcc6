export { createWarehouse, type Warehouse, type WarehouseOptions } from './client.js';
export { isContentError } from './errors.js';
export { MIGRATIONS_DIRECTORY, MigrationError } from './migrations.js';
export { migrate } from './migrator.js';
export { repairCells, type Stored } from './rollups/repair.js';
export { type SealedStep, sealNext } from './rollups/sealing.js';
export { readSeals, type Seal, type Seals } from './rollups/seals.js';
export { NOTHING_SEALED, planSegments, type SealedUntil, type Segment } from './rollups/segments.js';
export { checkConnection } from './statements/check-connection.js';
export type { PreparedInsert } from './statements/insert-block.js';
export {
  type MetricsAnswer,
  type MetricsGroup,
  type MetricsQuestion,
  metricsStatement,
  readMetrics,
  type SparseSeries,
} from './statements/metrics.js';
export {
  countStoredGroups,
  readStoredMetrics,
  type StoredResult,
  storeMetrics,
} from './statements/metrics-results.js';
export { PriceBookConflictError, registerPriceBook } from './statements/price-books.js';
export { insertRejectedEvents, prepareRejectedEvents, type RejectedEvent } from './statements/rejected-events.js';
export { readResourceTypes, resourceTypesStatement } from './statements/resource-types.js';
export type { Selection } from './statements/selection.js';
export { insertUsageEvents, type PricedEvent, prepareUsageEvents } from './statements/usage-events.js';
