/** The connection and the schema. */

export { clickHouseUrlFault, hostsOf } from './clickhouse/addresses.js';
export {
  checkConnection,
  createWarehouse,
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
export type { PreparedInsert } from './clickhouse/insert.js';
export { type Cluster, localDatabase } from './cluster/cluster.js';
export { countShards, oneServer, openShards, type Shards, shardIndex, shardNumber } from './cluster/shards.js';
export { ClusterError } from './cluster/topology.js';
export { accountsOf, EventRows, type NumberedEvent, type PricedEvent } from './events/event-rows.js';
export { Names } from './events/names.js';
/** The write side. */
export { checkPriceBook, PriceBookConflictError, readPriceBook, registerPriceBook } from './events/price-books.js';
export {
  deleteRejectedPayload,
  type PayloadPart,
  preparePayloadPart,
  prepareRejectedEvents,
  type RejectedEvent,
  type RejectedPayload,
  readPayloadParts,
} from './events/rejected-events.js';
export { encodeUsageEvents, insertUsageEvents, prepareUsageEvents } from './events/usage-events.js';
export { uuidCharacters } from './events/uuid-words.js';
export {
  type EventListQuestion,
  type EventPlace,
  type ListedEvent,
  placeOf,
  readEventList,
  type StoredPayload,
} from './metrics/event-list.js';
export { type DimensionValues, filtersOf, type Selection } from './metrics/plan.js';
/** The read side. */
export { type MetricsAnswer, type MetricsGroup, readMetrics } from './metrics/read.js';
export { readResourceTypes } from './metrics/resource-types.js';
export type { Grouping, MetricsQuestion } from './metrics/statement.js';
export { countStoredGroups, readStoredMetrics, type StoredPage, storeMetrics } from './metrics/stored-pages.js';
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
  settleRejections,
} from './operations/rejections.js';
export { type EventKey, type RepricingScope, readDimensionSpans, readRepricingStep } from './operations/repricing.js';
export { type RetentionBounds, readRetentionBounds, setRetentionBound } from './retention/bounds.js';
export { makeDayFinal } from './retention/final-cells.js';
export { dropEvents, type EventMonth, readEventMonths } from './retention/months.js';
export { type AccountHours, type Cell, GRAIN_MS, GRAINS, type Grain } from './rollups/cells.js';
export {
  markStaleHours,
  type OpenMarks,
  readAllStaleHours,
  readOpenMarks,
  readStaleHours,
  type StaleHours,
} from './rollups/marks.js';
export { REPAIR_LIMITS, type Repaired, type RepairLimits, repairNext } from './rollups/repair.js';
export { sealNext } from './rollups/sealing.js';
export {
  NO_CELLS,
  type ReadableCells,
  raiseWatermarks,
  readWatermarks,
  type SealedUntil,
  type Watermarks,
} from './rollups/watermarks.js';
export { MigrationError, migrate, readDatabaseId } from './schema/migrator.js';
