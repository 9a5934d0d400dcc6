export { ClickHouseError } from '@clickhouse/client';
export { type Accounts, readAccountsWithUsage } from './accounts.js';
export * from './addresses.js';
export { type RetentionBounds, readBounds } from './bounds.js';
export {
  checkConnection,
  checkServers,
  createWarehouse,
  LOW_PRIORITY,
  onEachShard,
  type PreparedInsert,
  readProcessors,
  type Scope,
  type Statement,
  type StatementObserver,
  type Warehouse,
  type WarehouseOptions,
} from './clickhouse/connection.js';
export { clickHouseFailureKind, isContentError, isStatementLimit, UnusableServerError } from './clickhouse/errors.js';
export { type Cluster, localDatabase } from './clickhouse/hosts.js';
export { inParts, listedBytes, MAX_LIST_BYTES } from './clickhouse/list-size.js';
export { EventRows, Names, type PricedEvent } from './events/event-rows.js';
export * from './events/price-books.js';
export * from './events/usage-events.js';
export { type ListedEvent, placeOf, readEventList, type StoredPayload } from './metrics/event-list.js';
export type { DimensionValues, Selection } from './metrics/plan.js';
export {
  type MetricsGroup,
  readMetrics,
  readResourceTypes,
  readStoredMetrics,
  type StoredPage,
  storeMetrics,
} from './metrics/read.js';
export type { Grouping, MetricsQuery } from './metrics/statement.js';
export * from './operations/account-activity.js';
export * from './operations/account-erasure.js';
export * from './operations/audit.js';
export * from './operations/rejections.js';
export * from './operations/repricing.js';
export * from './retention.js';
export { allConflicts, type Conflicts } from './rollups/conflicts.js';
export {
  markDirtyHours,
  markHoursOfEvents,
  readDirtyHours,
  readMarkedHours,
  readOpenMarks,
} from './rollups/dirty-hours.js';
export * from './rollups/maintenance.js';
export * from './rollups/readable.js';
export { GRAIN_MS, GRAINS, type Grain, type RollupKey } from './rollups/rollup-rows.js';
export * from './rollups/watermarks.js';
export { MigrationError, migrate, readDatabaseId } from './schema/migrator.js';
export { ClusterError, checkCluster, oneServer, openShards, type Shards } from './shards.js';
