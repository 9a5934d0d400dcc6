/** The connection and the schema. */
export { checkConnection, readDatabaseId } from './clickhouse/checks.js';
export {
  clickHouseUrlFault,
  createWarehouse,
  type Statement,
  type StatementEnd,
  type StatementObserver,
  type Warehouse,
  type WarehouseOptions,
} from './clickhouse/connection.js';
export {
  type ClickHouseFailure,
  clickHouseFailureKind,
  isContentError,
  STATEMENT_OUTCOMES,
  type StatementOutcome,
  UnansweredError,
} from './clickhouse/errors.js';
export type { PreparedInsert } from './clickhouse/insert.js';
/** The write side. */
export { checkPriceBook, PriceBookConflictError, registerPriceBook } from './events/price-books.js';
export { insertRejectedEvents, prepareRejectedEvents, type RejectedEvent } from './events/rejected-events.js';
export { insertUsageEvents, type PricedEvent, prepareUsageEvents } from './events/usage-events.js';
/** The read side. */
export { planSegments, type Segment } from './metrics/plan.js';
export {
  type MetricsAnswer,
  type MetricsGroup,
  type MetricsTotals,
  readMetrics,
  type SparseSeries,
} from './metrics/read.js';
export { readResourceTypes, resourceTypesStatement } from './metrics/resource-types.js';
export { filteredDimensions, type MetricsQuestion, metricsStatement, type Selection } from './metrics/statement.js';
export {
  countStoredGroups,
  readStoredMetrics,
  type StoredMetrics,
  type StoredResult,
  storeMetrics,
} from './metrics/stored-pages.js';
/** Operations. */
export {
  type AccountPartition,
  type AccountTable,
  DERIVED_TABLES,
  eraseAccountPartition,
  readAccountPartitions,
  removeDeletedRejections,
} from './operations/account-erasure.js';
export {
  type AuditScope,
  type CellContent,
  type CellDifference,
  readAuditDays,
  readCellDifferences,
  replaceCell,
} from './operations/audit.js';
export {
  countOpenRejections,
  type OpenRejection,
  type RejectionFilter,
  type RejectionId,
  readOpenRejections,
  readRejectionPayloads,
  type SettlementOutcome,
  settleRejections,
} from './operations/rejections.js';
export {
  type DimensionSpan,
  type EventKey,
  type RepricingScope,
  readDimensionSpans,
  readRepricingStep,
} from './operations/repricing.js';
export { GRAIN_MS, GRAINS, type Grain } from './rollups/cells.js';
export { type Repaired, repairCells, type Stored } from './rollups/repair.js';
export { type SealedStep, sealNext } from './rollups/sealing.js';
export {
  type GrainWatermarks,
  NOTHING_SEALED,
  readWatermarks,
  type SealedUntil,
  type Watermarks,
} from './rollups/watermarks.js';
export { MIGRATIONS_DIRECTORY, MigrationError, migrate } from './schema/migrator.js';
