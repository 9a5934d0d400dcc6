/**
 * Compares cells with the events, each cell and each of its groups. It shares nothing with the recomputation but the
 * tables, so that a fault there shows here.
 */
import type { EpochMs, Window } from '@meterline/catalog';
import { z } from 'zod';
import type { Relation, Statement, Warehouse } from '../clickhouse/connection.js';
import { CELL_ARRAYS, CELL_TABLE, type Cell, type CellArrays, type Grain } from '../rollups/cells.js';
import { FINAL_VERSION, recomputeCells } from '../rollups/recompute.js';

export interface AuditScope {
  readonly window: Window;
  /** Undefined: every account. */
  readonly accountId?: string | undefined;
}

/** What is known of one cell from one of the two sides. */
export interface CellContent {
  readonly events: number;
  /** Decimal text. */
  readonly usage: string;
  readonly cost: string;
}

/** A cell that differs from its events, the truth. Where the contents are the same, their groups or versions differ. */
export interface CellDifference extends Cell {
  readonly grain: Grain;
  /** Which of the cell's arrays, or its version. */
  readonly part: CellArrays | 'version';
  readonly truth: CellContent;
  readonly cell: CellContent;
  /** Whether the cell's version is above the truth's, so that a recomputed cell would not replace it. */
  readonly isAhead: boolean;
}

/** The bucket of an event. */
const EVENT_BUCKET = {
  hourly: 'event_hour',
  daily: 'toStartOfDay(event_hour)',
} as const satisfies Record<Grain, string>;

function inScope(bucket: string, { accountId }: AuditScope): string {
  const inWindow = `${bucket} >= toDateTime({from: UInt32}, 'UTC') AND ${bucket} < toDateTime({to: UInt32}, 'UTC')`;
  return accountId === undefined ? inWindow : `account_id = {account_id: String} AND ${inWindow}`;
}

function scopeParameters({ window, accountId }: AuditScope): Relation['query_params'] {
  const { startTime, endTime } = window;
  return { from: startTime / 1000, to: endTime / 1000, ...(accountId !== undefined && { account_id: accountId }) };
}

function auditDaysStatement(scope: AuditScope): Statement {
  const days = (table: string, bucket: string) => `
  SELECT DISTINCT toStartOfDay(${bucket}) AS day
  FROM ${table}
  WHERE ${inScope(bucket, scope)}`;
  const tables = [days('usage_events', 'event_hour'), days('usage_hourly', 'bucket'), days('usage_daily', 'bucket')];
  return {
    name: 'read_audit_days',
    query: `
SELECT DISTINCT toUnixTimestamp(day) AS started
FROM
(${tables.join('\n  UNION ALL')}
)
ORDER BY started`,
    query_params: scopeParameters(scope),
  };
}

/** @returns the starts of the days of the scope that hold events or cells, ascending */
export async function readAuditDays(warehouse: Warehouse, scope: AuditScope): Promise<EpochMs[]> {
  const rows = await warehouse.read(auditDaysStatement(scope), z.object({ started: z.number() }));
  return rows.map(({ started }) => started * 1000);
}

/**
 * Both sides as rows of (cell, part, is_truth, events, usage, cost, version, digest), a row for each group and one for the
 * cell's version. Groups are compared through the sum of a hash of all that each holds: their order does not matter.
 */
function truthGroups(grain: Grain, part: CellArrays, scope: AuditScope): string {
  const dimensions = CELL_ARRAYS[part].join(', ');
  return `
    SELECT
      account_id,
      ${EVENT_BUCKET[grain]} AS cell_bucket,
      '${part}' AS part,
      true AS is_truth,
      count() AS group_events,
      sum(usage_events.usage) AS group_usage,
      sum(usage_events.cost) AS group_cost,
      toUInt128(0) AS group_version,
      sipHash64(${dimensions}, group_usage, group_cost, group_events) AS digest
    FROM usage_events FINAL
    WHERE ${inScope('event_hour', scope)} AND NOT voided
    GROUP BY account_id, cell_bucket, ${dimensions}`;
}

function cellGroups(grain: Grain, part: CellArrays, scope: AuditScope): string {
  const dimensions = CELL_ARRAYS[part].map((dimension) => `${part}.${dimension}`);
  return `
    SELECT
      account_id,
      bucket AS cell_bucket,
      '${part}' AS part,
      false AS is_truth,
      ${part}.events AS group_events,
      ${part}.usage AS group_usage,
      ${part}.cost AS group_cost,
      toUInt128(0) AS group_version,
      sipHash64(${dimensions.join(', ')}, group_usage, group_cost, group_events) AS digest
    FROM ${CELL_TABLE[grain]} FINAL
    ARRAY JOIN ${[...dimensions, `${part}.usage`, `${part}.cost`, `${part}.events`].join(', ')}
    WHERE ${inScope('bucket', scope)}`;
}

function truthVersions(grain: Grain, scope: AuditScope): string {
  return `
    SELECT
      account_id,
      ${EVENT_BUCKET[grain]} AS cell_bucket,
      'version' AS part,
      true AS is_truth,
      countIf(NOT voided) AS group_events,
      sumIf(usage_events.usage, NOT voided) AS group_usage,
      sumIf(usage_events.cost, NOT voided) AS group_cost,
      toUInt128(sum(1 + row_version)) AS group_version,
      sipHash64(group_version) AS digest
    FROM usage_events FINAL
    WHERE ${inScope('event_hour', scope)}
    GROUP BY account_id, cell_bucket`;
}

function cellVersions(grain: Grain, scope: AuditScope): string {
  return `
    SELECT
      account_id,
      bucket AS cell_bucket,
      'version' AS part,
      false AS is_truth,
      arraySum(summary.events) AS group_events,
      arraySum(summary.usage) AS group_usage,
      arraySum(summary.cost) AS group_cost,
      version AS group_version,
      -- Cells that are final already differ in this bit alone
      sipHash64(bitAnd(group_version, bitNot(${FINAL_VERSION}))) AS digest
    FROM ${CELL_TABLE[grain]} FINAL
    WHERE ${inScope('bucket', scope)}`;
}

/** @param scope whole buckets of the grain */
function cellDifferencesStatement(grain: Grain, scope: AuditScope): Statement {
  const sides = [
    truthGroups(grain, 'summary', scope),
    cellGroups(grain, 'summary', scope),
    truthGroups(grain, 'detail', scope),
    cellGroups(grain, 'detail', scope),
    truthVersions(grain, scope),
    cellVersions(grain, scope),
  ];
  return {
    name: 'read_cell_differences',
    query: `
SELECT
  account_id,
  toUnixTimestamp(cell_bucket) AS started,
  part,
  sumIf(group_events, is_truth) AS truth_events,
  sumIf(group_usage, is_truth) AS truth_usage,
  sumIf(group_cost, is_truth) AS truth_cost,
  sumIf(group_events, NOT is_truth) AS cell_events,
  sumIf(group_usage, NOT is_truth) AS cell_usage,
  sumIf(group_cost, NOT is_truth) AS cell_cost,
  sumIf(group_version, NOT is_truth) > sumIf(group_version, is_truth) AS is_ahead
FROM
(${sides.join('\n    UNION ALL')}
)
GROUP BY account_id, cell_bucket, part
HAVING sumIf(digest, is_truth) != sumIf(digest, NOT is_truth) OR countIf(is_truth) != countIf(NOT is_truth)
ORDER BY cell_bucket, account_id, part`,
    query_params: scopeParameters(scope),
  };
}

const differenceRow = z.object({
  account_id: z.string(),
  started: z.number(),
  part: z.enum(['summary', 'detail', 'version']),
  truth_events: z.coerce.number(),
  truth_usage: z.string(),
  truth_cost: z.string(),
  cell_events: z.coerce.number(),
  cell_usage: z.string(),
  cell_cost: z.string(),
  is_ahead: z.union([z.boolean(), z.number()]).transform(Boolean),
});

/**
 * @param scope whole buckets of the grain, all of them sealed. Cells of hours that are marked as stale, and of their days, may
 * differ: nobody reads them. Where events arrive at this moment, a cell may also differ until its hour is marked.
 */
export async function readCellDifferences(
  warehouse: Warehouse,
  grain: Grain,
  scope: AuditScope,
): Promise<CellDifference[]> {
  const rows = await warehouse.read(cellDifferencesStatement(grain, scope), differenceRow);
  return rows.map((row) => ({
    grain,
    accountId: row.account_id,
    bucket: row.started * 1000,
    part: row.part,
    truth: { events: row.truth_events, usage: row.truth_usage, cost: row.truth_cost },
    cell: { events: row.cell_events, usage: row.cell_usage, cost: row.cell_cost },
    isAhead: row.is_ahead,
  }));
}

/**
 * Recomputes a cell that differs. One whose version is above the truth's, which a restored backup can leave behind, is
 * removed first: until it is recomputed a moment later, answers lack it.
 */
export async function replaceCell(
  warehouse: Warehouse,
  { grain, accountId, bucket }: CellDifference,
  remove: boolean,
): Promise<void> {
  if (remove) await removeCell(warehouse, grain, { accountId, bucket });
  await recomputeCells(warehouse, grain, { cells: [{ accountId, bucket }] });
}

async function removeCell(warehouse: Warehouse, grain: Grain, { accountId, bucket }: Cell): Promise<void> {
  await warehouse.run({
    name: 'remove_cell',
    query: `ALTER TABLE ${CELL_TABLE[grain]} DELETE WHERE account_id = {account_id: String} AND bucket = toDateTime({bucket: UInt32}, 'UTC')`,
    query_params: { account_id: accountId, bucket: bucket / 1000 },
    settings: { mutations_sync: '2' },
  });
}
