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
export { MIGRATIONS_DIRECTORY, MigrationError } from './migrations.js';
export { migrate } from './migrator.js';
export {
  type AuditScope,
  type CellContent,
  type CellDifference,
  readAuditDays,
  readCellDifferences,
  replaceCell,
} from './rollups/audit.js';
export { GRAIN_MS, GRAINS, type Grain } from './rollups/grain.js';
export { type Repaired, repairCells, type Stored } from './rollups/repair.js';
export { type SealedStep, sealNext } from './rollups/sealing.js';
export { readSeals, type Seal, type Seals } from './rollups/seals.js';
export { NOTHING_SEALED, planSegments, type SealedUntil, type Segment } from './rollups/segments.js';
export {
  type AccountPartition,
  type AccountTable,
  DERIVED_TABLES,
  eraseAccountPartition,
  readAccountPartitions,
  removeDeletedRejections,
} from './statements/account-erasure.js';
export {
  type MetricsAnswer,
  type MetricsGroup,
  type MetricsQuestion,
  type MetricsTotals,
  metricsStatement,
  readMetrics,
  type SparseSeries,
} from './statements/metrics.js';
export {
  countStoredGroups,
  readStoredMetrics,
  type StoredMetrics,
  type StoredResult,
  storeMetrics,
} from './statements/metrics-results.js';
export { checkPriceBook, PriceBookConflictError, registerPriceBook } from './statements/price-books.js';
export { insertRejectedEvents, prepareRejectedEvents, type RejectedEvent } from './statements/rejected-events.js';
export {
  countOpenRejections,
  type OpenRejection,
  type RejectionFilter,
  type RejectionId,
  readOpenRejections,
  readRejectionPayloads,
} from './statements/rejections.js';
export {
  type DimensionSpan,
  type EventKey,
  type RepricingScope,
  readDimensionSpans,
  readRepricingStep,
} from './statements/repricing.js';
export { readResourceTypes, resourceTypesStatement } from './statements/resource-types.js';
export { filteredDimensions, type Selection } from './statements/selection.js';
export { type SettlementOutcome, settleRejections } from './statements/settled-rejections.js';
export { insertUsageEvents, type PricedEvent, prepareUsageEvents } from './statements/usage-events.js';
