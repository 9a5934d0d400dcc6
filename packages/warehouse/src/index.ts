/** The connection and the schema. */

export { ClickHouseError } from '@clickhouse/client';
export type { Accounts } from './accounts.js';
export { clickHouseUrlFault, hostsOf } from './addresses.js';
export {
  checkConnection,
  createWarehouse,
  LOW_PRIORITY,
  onEachShard,
  type PreparedInsert,
  type Scope,
  type Statement,
  type StatementObserver,
  type Warehouse,
  type WarehouseOptions,
} from './clickhouse/connection.js';
export {
  type ClickHouseFailure,
  clickHouseFailureKind,
  isContentError,
  isStatementLimit,
} from './clickhouse/errors.js';
export { type Cluster, localDatabase } from './clickhouse/hosts.js';
export { checkCluster, oneServer, openShards, type Shards } from './cluster/shards.js';
export { ClusterError } from './cluster/topology.js';
export { EventRows, type EventToStore, type PricedEvent } from './events/event-rows.js';
export { Names } from './events/names.js';
/** The write side. */
export { checkPriceBook, PriceBookConflictError, readPriceBook, registerPriceBook } from './events/price-books.js';
export { insertUsageEvents, prepareUsageEvents } from './events/usage-events.js';
export {
  type EventListQuery,
  type EventPlace,
  type ListedEvent,
  placeOf,
  readEventList,
  type StoredPayload,
} from './metrics/event-list.js';
export { type DimensionValues, filtersOf, type Selection } from './metrics/plan.js';
/** The read side. */
export { type MetricsGroup, type MetricsResult, readMetrics, readResourceTypes } from './metrics/read.js';
export type { Grouping, MetricsQuery } from './metrics/statement.js';
export { readStoredMetrics, type StoredPage, storeMetrics } from './metrics/stored-pages.js';
/** Operations. */
export {
  type AccountPartition,
  type AccountTable,
  DERIVED_TABLES,
  eraseAccountPartition,
  readAccountPartitions,
  recomputationsEnded,
  removeDeletedRejections,
} from './operations/account-erasure.js';
export {
  type AuditScope,
  type RollupDifference,
  readAuditDays,
  readRollupDifferences,
  replaceRollup,
} from './operations/audit.js';
export {
  countOpenRejections,
  type OpenRejection,
  prepareRejectedEvents,
  type RejectedEvent,
  type RejectionFilter,
  type RejectionId,
  readOpenRejections,
  readRejectionPayloads,
  settleRejections,
} from './operations/rejections.js';
export { type EventKey, type RepricingScope, readDimensionSpans, readRepricingStep } from './operations/repricing.js';
export { type RetentionBounds, readRetentionBounds, setRetentionBound } from './retention/bounds.js';
export { dropEvents, type EventMonth, makeDayFinal, readEventMonths } from './retention/months.js';
export {
  markDirtyHours,
  type OpenMarks,
  readDirtyHours,
  readMarkedHours,
  readOpenMarks,
} from './rollups/dirty-hours.js';
export { DIRTY_LIMITS, recomputeDirtyHours, sealNext } from './rollups/maintenance.js';
export {
  type QueryScope,
  type ReadRollupState,
  type RollupState,
  rollupStateReader,
  stateSince,
} from './rollups/readable.js';
export { type AccountHours, GRAIN_MS, GRAINS, type Grain, type RollupKey } from './rollups/rollup-rows.js';
export {
  lowestWatermarks,
  NO_ROLLUPS,
  type ReadableRollups,
  raiseWatermarks,
  readWatermarks,
  type SealedUntil,
  type Watermarks,
} from './rollups/watermarks.js';
export { MigrationError, migrate, readDatabaseId } from './schema/migrator.js';
