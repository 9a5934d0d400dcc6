/**
 * Selects and counts the source rows of rollup rows: events for hours, hourly rows for days. The counts keep statements small enough for
 * the server's time and memory limits. Source: docs/decisions/0006.
 */
import { TupleParam } from '@clickhouse/client';
import type { EpochMs } from '@meterline/catalog';
import { z } from 'zod';
import type { StatementParameters, Warehouse } from '../clickhouse/connection.js';
import { GRAIN_MS, type Grain, type RollupKey } from './rollup-rows.js';

type RollupKeyPair = readonly [accountId: string, bucket: EpochMs];

/** A range of rollup rows: those with from <= bucket < to whose keys are between `first` and `last`, inclusive. */
interface Slice {
  readonly from: EpochMs;
  readonly to: EpochMs;
  readonly first: RollupKeyPair;
  readonly last: RollupKeyPair;
}

export type RollupSelection = SizedSlice | { readonly rollups: readonly RollupKey[] };

export interface Source {
  readonly table: string;
  readonly hour: string;
  readonly bucket: string;
  /** Expression for the number of source rows of a rollup row, including unmerged duplicates. */
  readonly rows: string;
  /** Additional conditions that help ClickHouse find the rows of a slice (a range of rollup rows). */
  readonly ofSlice: readonly string[];
  /** @param condition may use only key columns, because it applies before FINAL picks a row for each key */
  readonly relation: (condition: string) => string;
}

const OF_HOURS = (hour: string) =>
  `${hour} >= toDateTime({from: UInt32}, 'UTC') AND ${hour} < toDateTime({to: UInt32}, 'UTC')`;
const OF_ACCOUNTS = 'account_id >= {first_account: String} AND account_id <= {last_account: String}';

/**
 * `relation` returns a SELECT with one row per event, or per entry of an hourly rollup row. Voided events have no amounts or array entries,
 * but add to the version. Otherwise voiding an event would leave its rollup row's version unchanged.
 */
export const SOURCES: Readonly<Record<Grain, Source>> = {
  hourly: {
    table: 'usage_events',
    hour: 'event_hour',
    bucket: 'event_hour',
    rows: 'count()',
    // Skip accounts without events in these hours. The projection by_hour makes this check cheap.
    ofSlice: [
      `account_id IN (SELECT account_id FROM usage_events WHERE ${OF_HOURS('event_hour')} AND ${OF_ACCOUNTS} GROUP BY account_id)`,
    ],
    relation: (condition) => `
        SELECT
          account_id,
          event_hour AS bucket,
          workspace,
          resource_type,
          resource_name,
          resource_uuid,
          billing_dimension,
          if(voided, 0, usage_events.usage) AS usage,
          if(voided, 0, usage_events.cost) AS cost,
          toUInt64(NOT voided) AS events,
          1 + row_version AS version
        FROM usage_events FINAL
        PREWHERE ${condition}`,
  },
  daily: {
    table: 'usage_hourly',
    hour: 'usage_hourly.bucket',
    bucket: 'toStartOfDay(usage_hourly.bucket)',
    rows: 'sum(greatest(1, length(detail.events)))',
    ofSlice: [],
    relation: (condition) => `
        SELECT
          account_id,
          toStartOfDay(usage_hourly.bucket) AS bucket,
          workspace,
          resource_type,
          resource_name,
          resource_uuid,
          billing_dimension,
          usage,
          cost,
          events,
          -- Count the version of an hour once, also if all its events are voided, so that it has no groups
          if(position <= 1, usage_hourly.version, 0) AS version
        FROM usage_hourly FINAL
        LEFT ARRAY JOIN
          detail.workspace AS workspace,
          detail.resource_type AS resource_type,
          detail.resource_name AS resource_name,
          detail.resource_uuid AS resource_uuid,
          detail.billing_dimension AS billing_dimension,
          detail.usage AS usage,
          detail.cost AS cost,
          detail.events AS events,
          arrayEnumerate(detail.events) AS position
        PREWHERE ${condition}`,
  },
};

export interface Selected {
  readonly condition: string;
  readonly query_params: StatementParameters;
}

export function selectHours(grain: Grain, from: EpochMs, to: EpochMs): Selected {
  return { condition: OF_HOURS(SOURCES[grain].hour), query_params: { from: from / 1000, to: to / 1000 } };
}

export function selectRollups(grain: Grain, selection: RollupSelection): Selected {
  const { hour, bucket, ofSlice } = SOURCES[grain];
  if ('rollups' in selection) {
    const keys = selection.rollups.map((rollup) => keyTuple([rollup.accountId, rollup.bucket]));
    return { condition: `(account_id, ${bucket}) IN {rollups: Array(${KEY})}`, query_params: { rollups: keys } };
  }
  const { from, to, first, last } = selection;
  const conditions = [
    OF_HOURS(hour),
    // The tuple conditions below imply these bounds, but ClickHouse uses only such simple bounds to skip rows.
    OF_ACCOUNTS,
    `(account_id, ${bucket}) >= {first_rollup: ${KEY}}`,
    `(account_id, ${bucket}) <= {last_rollup: ${KEY}}`,
    ...ofSlice,
  ];
  return {
    condition: conditions.join('\n          AND '),
    query_params: {
      ...selectHours(grain, from, to).query_params,
      first_account: first[0],
      last_account: last[0],
      first_rollup: keyTuple(first),
      last_rollup: keyTuple(last),
    },
  };
}

const KEY = "Tuple(String, DateTime('UTC'))";

function keyTuple([accountId, bucket]: RollupKeyPair): TupleParam {
  return new TupleParam([accountId, dateTime(bucket)]);
}

/** Formats a DateTime as a string. Inside a tuple, no other format works for all of 1970. */
export function dateTime(instant: EpochMs): string {
  return new Date(instant).toISOString().slice(0, 'YYYY-MM-DDThh:mm:ss'.length).replace('T', ' ');
}

const sourceRows = z
  .object({ accountId: z.string(), started: z.number(), rows: z.coerce.number() })
  .transform(({ started, ...row }) => ({ ...row, bucket: started * 1000 }));

type SourceRows = z.output<typeof sourceRows>;

export async function readSourceRows(
  warehouse: Warehouse,
  grain: Grain,
  selection: RollupSelection,
): Promise<SourceRows[]> {
  const { table, bucket, rows } = SOURCES[grain];
  const { condition, query_params } = selectRollups(grain, selection);
  const statement = {
    name: 'read_source_rows',
    query: `
SELECT
  account_id AS accountId,
  toUnixTimestamp(${bucket}) AS started,
  ${rows} AS rows
FROM ${table}
WHERE ${condition}
GROUP BY account_id, started`,
    query_params,
  };
  return warehouse.read(statement, sourceRows);
}

/** Returns where to end a step that starts at `from`: after the hour or day with its row number `stepRows`, or at `limit` if it has fewer. */
export async function readStepEnd(
  warehouse: Warehouse,
  grain: Grain,
  { from, limit, stepRows }: { readonly from: EpochMs; readonly limit: EpochMs; readonly stepRows: number },
): Promise<EpochMs> {
  const { table, bucket, rows } = SOURCES[grain];
  const { condition, query_params } = selectHours(grain, from, limit);
  const statement = {
    name: 'read_sealing_step',
    query: `
SELECT toUnixTimestamp(step_bucket) AS last_bucket
FROM
(
  SELECT
    ${bucket} AS step_bucket,
    sum(${rows}) OVER (ORDER BY step_bucket) AS rows_until
  FROM ${table}
  WHERE ${condition}
  GROUP BY step_bucket
)
WHERE rows_until >= {step_rows: UInt64}
ORDER BY step_bucket
LIMIT 1`,
    query_params: { ...query_params, step_rows: stepRows },
  };
  const [last] = await warehouse.read(statement, z.object({ last_bucket: z.number() }));
  return last ? last.last_bucket * 1000 + GRAIN_MS[grain] : limit;
}

const place = z
  .tuple([z.string(), z.number()])
  .transform(([accountId, started]) => [accountId, started * 1000] as const);

const slice = z.object({ first: place, last: place, rows: z.coerce.number(), rollupRows: z.coerce.number() });

export interface SizedSlice extends Slice {
  readonly rollupRows: number;
  /** Includes unmerged duplicates. */
  readonly rows: number;
}

/**
 * Splits rollup rows into ranges (slices) of about `sliceRows` source rows, always fewer than twice as many. A larger rollup row is a slice
 * by itself. A slice has at most as many groups as source rows, so this also bounds a statement's memory.
 */
export async function readSlices(
  warehouse: Warehouse,
  grain: Grain,
  { from, to, sliceRows }: { readonly from: EpochMs; readonly to: EpochMs; readonly sliceRows: number },
): Promise<SizedSlice[]> {
  const { table, bucket, rows } = SOURCES[grain];
  const { condition, query_params } = selectHours(grain, from, to);
  const statement = {
    name: 'read_sealing_slices',
    query: `
SELECT
  min((account_id, toUnixTimestamp(rollup_bucket))) AS first,
  max((account_id, toUnixTimestamp(rollup_bucket))) AS last,
  sum(rollup_rows) AS rows,
  count() AS rollupRows
FROM
(
  SELECT
    account_id,
    ${bucket} AS rollup_bucket,
    ${rows} AS rollup_rows,
    intDiv(sum(rollup_rows) OVER (ORDER BY account_id, rollup_bucket) - rollup_rows, {slice_rows: UInt64}) AS slice
  FROM ${table}
  WHERE ${condition}
  GROUP BY account_id, rollup_bucket
)
GROUP BY slice, rollup_rows >= {slice_rows: UInt64}
ORDER BY first`,
    query_params: { ...query_params, slice_rows: sliceRows },
  };
  const slices = await warehouse.read(statement, slice);
  return slices.map((found) => ({ from, to, ...found }));
}
