/** Compares rollup rows with the events that they were computed from. The SQL is separate, so that it also finds bugs in that computation. */
import type { EpochMs, Window } from '@meterline/catalog';
import { z } from 'zod';
import type { Statement, StatementParameters, Warehouse } from '../clickhouse/connection.js';
import { clearMarks, markUnreadable } from '../rollups/dirty-hours.js';
import { FINAL_VERSION, recomputeRollups } from '../rollups/recompute.js';
import { type Grain, ROLLUP_ARRAYS, ROLLUP_TABLE, type RollupArrays, type RollupKey } from '../rollups/rollup-rows.js';

export interface AuditScope {
  readonly window: Window;
  readonly accountId?: string | undefined;
}

/** Usage and cost are decimal strings. */
const rollupContent = z
  .tuple([z.coerce.number(), z.string(), z.string()])
  .transform(([events, usage, cost]) => ({ events, usage, cost }));

const rollupDifference = z
  .object({
    accountId: z.string(),
    started: z.number(),
    part: z.enum(['summary', 'detail', 'version']),
    truth: rollupContent,
    rollup: rollupContent,
    /** True if the stored version is higher than the computed version, so that a recomputed row would not replace the stored row. */
    isAhead: z.coerce.boolean(),
  })
  .transform(({ started, ...difference }) => ({ ...difference, bucket: started * 1000 }));

/** A rollup row that differs from its events, which are the truth. If the sums are equal, the groups or the versions differ. */
export type RollupDifference = Readonly<z.output<typeof rollupDifference>> & { readonly grain: Grain };

const EVENT_BUCKET = {
  hourly: 'event_hour',
  daily: 'toStartOfDay(event_hour)',
} as const satisfies Record<Grain, string>;

function inScope(bucket: string, { accountId }: AuditScope): string {
  const inWindow = `${bucket} >= toDateTime({from: UInt32}, 'UTC') AND ${bucket} < toDateTime({to: UInt32}, 'UTC')`;
  return accountId === undefined ? inWindow : `account_id = {account_id: String} AND ${inWindow}`;
}

function scopeParameters({ window, accountId }: AuditScope): StatementParameters {
  const { startTime, endTime } = window;
  return { from: startTime / 1000, to: endTime / 1000, ...(accountId !== undefined && { account_id: accountId }) };
}

export async function readAuditDays(warehouse: Warehouse, scope: AuditScope): Promise<EpochMs[]> {
  const days = (table: string, bucket: string) => `
  SELECT DISTINCT toStartOfDay(${bucket}) AS day
  FROM ${table}
  WHERE ${inScope(bucket, scope)}`;
  const tables = [days('usage_events', 'event_hour'), days('usage_hourly', 'bucket'), days('usage_daily', 'bucket')];
  const statement = {
    name: 'read_audit_days',
    query: `
SELECT DISTINCT toUnixTimestamp(day) AS started
FROM
(${tables.join('\n  UNION ALL')}
)
ORDER BY started`,
    query_params: scopeParameters(scope),
  };
  const rows = await warehouse.read(statement, z.object({ started: z.number() }));
  return rows.map(({ started }) => started * 1000);
}

/** This function and the next three return SELECTs with equal columns. The hashes of groups are summed, so their order does not matter. */
function truthGroups(grain: Grain, part: RollupArrays, scope: AuditScope): string {
  const dimensions = ROLLUP_ARRAYS[part].join(', ');
  return `
    SELECT
      account_id,
      ${EVENT_BUCKET[grain]} AS rollup_bucket,
      '${part}' AS part,
      true AS is_truth,
      count() AS group_events,
      sum(usage_events.usage) AS group_usage,
      sum(usage_events.cost) AS group_cost,
      toUInt128(0) AS group_version,
      sipHash64(${dimensions}, group_usage, group_cost, group_events) AS digest
    FROM usage_events FINAL
    WHERE ${inScope('event_hour', scope)} AND NOT voided
    GROUP BY account_id, rollup_bucket, ${dimensions}`;
}

function rollupGroups(grain: Grain, part: RollupArrays, scope: AuditScope): string {
  const dimensions = ROLLUP_ARRAYS[part].map((dimension) => `${part}.${dimension}`);
  return `
    SELECT
      account_id,
      bucket AS rollup_bucket,
      '${part}' AS part,
      false AS is_truth,
      ${part}.events AS group_events,
      ${part}.usage AS group_usage,
      ${part}.cost AS group_cost,
      toUInt128(0) AS group_version,
      sipHash64(${dimensions.join(', ')}, group_usage, group_cost, group_events) AS digest
    FROM ${ROLLUP_TABLE[grain]} FINAL
    ARRAY JOIN ${[...dimensions, `${part}.usage`, `${part}.cost`, `${part}.events`].join(', ')}
    WHERE ${inScope('bucket', scope)}`;
}

function truthVersions(grain: Grain, scope: AuditScope): string {
  return `
    SELECT
      account_id,
      ${EVENT_BUCKET[grain]} AS rollup_bucket,
      'version' AS part,
      true AS is_truth,
      countIf(NOT voided) AS group_events,
      sumIf(usage_events.usage, NOT voided) AS group_usage,
      sumIf(usage_events.cost, NOT voided) AS group_cost,
      toUInt128(sum(1 + row_version)) AS group_version,
      sipHash64(group_version) AS digest
    FROM usage_events FINAL
    WHERE ${inScope('event_hour', scope)}
    GROUP BY account_id, rollup_bucket`;
}

function rollupVersions(grain: Grain, scope: AuditScope): string {
  return `
    SELECT
      account_id,
      bucket AS rollup_bucket,
      'version' AS part,
      false AS is_truth,
      arraySum(summary.events) AS group_events,
      arraySum(summary.usage) AS group_usage,
      arraySum(summary.cost) AS group_cost,
      version AS group_version,
      -- The version of a final rollup row has one more bit, which the versions of events do not have
      sipHash64(bitAnd(group_version, bitNot(${FINAL_VERSION}))) AS digest
    FROM ${ROLLUP_TABLE[grain]} FINAL
    WHERE ${inScope('bucket', scope)}`;
}

function rollupDifferencesStatement(grain: Grain, scope: AuditScope): Statement {
  const sides = [
    truthGroups(grain, 'summary', scope),
    rollupGroups(grain, 'summary', scope),
    truthGroups(grain, 'detail', scope),
    rollupGroups(grain, 'detail', scope),
    truthVersions(grain, scope),
    rollupVersions(grain, scope),
  ];
  return {
    name: 'read_rollup_differences',
    query: `
SELECT
  account_id AS accountId,
  toUnixTimestamp(rollup_bucket) AS started,
  part,
  tuple(sumIf(group_events, is_truth), sumIf(group_usage, is_truth), sumIf(group_cost, is_truth)) AS truth,
  tuple(sumIf(group_events, NOT is_truth), sumIf(group_usage, NOT is_truth), sumIf(group_cost, NOT is_truth)) AS rollup,
  sumIf(group_version, NOT is_truth) > sumIf(group_version, is_truth) AS isAhead
FROM
(${sides.join('\n    UNION ALL')}
)
GROUP BY account_id, rollup_bucket, part
HAVING sumIf(digest, is_truth) != sumIf(digest, NOT is_truth) OR countIf(is_truth) != countIf(NOT is_truth)
ORDER BY rollup_bucket, account_id, part`,
    query_params: scopeParameters(scope),
  };
}

/**
 * Returns the rollup rows that differ from their events. Rows of dirty hours and of their days may differ: they wait for a recomputation,
 * and no query reads them. While events arrive, other rows may differ until their hours are marked as dirty.
 * @param scope a window of whole hours or days, which must be sealed (their rollup rows are computed)
 */
export async function readRollupDifferences(
  warehouse: Warehouse,
  grain: Grain,
  scope: AuditScope,
): Promise<RollupDifference[]> {
  const differences = await warehouse.read(rollupDifferencesStatement(grain, scope), rollupDifference);
  return differences.map((difference) => ({ ...difference, grain }));
}

/**
 * Recomputes a rollup row. Set `remove` if its version is too high, for example after a restored backup: a new row would not replace it, so
 * it is removed first. Until the new row is stored, queries read its hours from the events, even after a crash.
 */
export async function replaceRollup(
  warehouse: Warehouse,
  { grain, accountId, bucket }: RollupDifference,
  remove: boolean,
): Promise<void> {
  const rollups = [{ accountId, bucket }];
  const marks = remove ? await markUnreadable(warehouse, rollups) : [];
  if (remove) await removeRollup(warehouse, grain, { accountId, bucket });
  await recomputeRollups(warehouse, grain, { rollups });
  await clearMarks(warehouse, marks);
}

async function removeRollup(warehouse: Warehouse, grain: Grain, { accountId, bucket }: RollupKey): Promise<void> {
  await warehouse.run({
    name: 'remove_rollup',
    query: `ALTER TABLE ${ROLLUP_TABLE[grain]} DELETE WHERE account_id = {account_id: String} AND bucket = toDateTime({bucket: UInt32}, 'UTC')`,
    query_params: { account_id: accountId, bucket: bucket / 1000 },
  });
}
