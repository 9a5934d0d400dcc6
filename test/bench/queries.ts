/**
 * A dashboard's queries about the large account, as requests and as the SQL that an engineer would write by hand: from rollup rows, with
 * FINAL, only the necessary columns, and nothing that an API adds.
 */
import { formatTimestamp, type GroupByDimension, MS_PER_DAY, type Resolution, type Window } from '@meterline/catalog';
import type { Warehouse } from '@meterline/warehouse';
import { select } from '../harness/stack.js';
import { CORPUS_END, LARGE_ACCOUNT, SEALED_UNTIL } from './corpus.js';

export interface Query {
  readonly title: string;
  readonly window: Window;
  readonly resolution: Resolution;
  readonly groupBy: readonly GroupByDimension[];
  /** Whether the response has more groups than a page. */
  readonly hasPages?: boolean;
}

const TODAY = Math.floor(CORPUS_END / MS_PER_DAY) * MS_PER_DAY;
const daysUntil = (days: number, endTime = TODAY): Window => ({ startTime: endTime - days * MS_PER_DAY, endTime });

const BY_NAME = { window: daysUntil(89), resolution: 'daily', groupBy: ['resource_name'], hasPages: true } as const;
const BY_UUID = { window: daysUntil(7), resolution: 'hourly', groupBy: ['resource_uuid'], hasPages: true } as const;
const BY_TWO: readonly GroupByDimension[] = ['workspace', 'billing_dimension'];

export const QUERIES: readonly Query[] = [
  { title: 'total, daily, 30 d', window: daysUntil(30), resolution: 'daily', groupBy: [] },
  { title: 'by type, daily, 30 d', window: daysUntil(30), resolution: 'daily', groupBy: ['resource_type'] },
  { title: 'by workspace × dimension, daily, 30 d', window: daysUntil(30), resolution: 'daily', groupBy: BY_TWO },
  { title: 'by name, daily, 90 d, first page', ...BY_NAME },
  { title: 'by uuid, hourly, 7 d, first page', ...BY_UUID },
  {
    ...{ title: 'current day, hourly, 2 h unsealed', resolution: 'hourly', groupBy: [] },
    window: daysUntil(1, TODAY + MS_PER_DAY),
  },
];

/** The request's path for the API. */
export function metricsPath(
  accountId: string,
  { window, resolution, groupBy }: Pick<Query, 'window' | 'resolution' | 'groupBy'>,
): string {
  const [startTime, endTime] = [formatTimestamp(window.startTime), formatTimestamp(window.endTime)];
  const grouping = groupBy.length > 0 && { groupBy: groupBy.join(',') };
  return `/v0/accounts/${accountId}/metrics?${new URLSearchParams({ startTime, endTime, resolution, ...grouping })}`;
}

const PAGE = 100;

/** @returns milliseconds */
export async function askByHand(
  warehouse: Warehouse,
  { window, groupBy, hasPages, resolution }: Query,
): Promise<number> {
  const parameters = {
    account: LARGE_ACCOUNT,
    from: window.startTime / 1000,
    to: window.endTime / 1000,
    sealed: SEALED_UNTIL / 1000,
  };
  const [dimension = ''] = groupBy;
  const summary = resolution === 'hourly' ? CURRENT_DAY : summaries(groupBy);
  const started = performance.now();
  await select(warehouse, hasPages ? firstPage(dimension, resolution) : summary, parameters);
  return performance.now() - started;
}

const SETTINGS = 'SETTINGS do_not_merge_across_partitions_select_final = 1';
const OF_WINDOW = 'account_id = {account: String} AND bucket >= {from: UInt32} AND bucket < {to: UInt32}';

/** Rows of group, day, cost and usage. */
function summaries(groupBy: readonly string[]): string {
  if (groupBy.length === 0) {
    return `
SELECT bucket, sum(arraySum(summary.cost)), sum(arraySum(summary.usage))
FROM usage_daily FINAL WHERE ${OF_WINDOW} GROUP BY bucket ORDER BY bucket ${SETTINGS}`;
  }
  const dimensions = groupBy.join(', ');
  const joined = groupBy.map((dimension) => `summary.${dimension} AS ${dimension}`).join(', ');
  return `
SELECT ${dimensions}, bucket, sum(cost), sum(usage)
FROM usage_daily FINAL ARRAY JOIN ${joined}, summary.cost AS cost, summary.usage AS usage
WHERE ${OF_WINDOW} GROUP BY ${dimensions}, bucket ORDER BY ${dimensions}, bucket ${SETTINGS}`;
}

/** Sealed hours from rollup rows, the last two hours from events. */
const CURRENT_DAY = `
SELECT hour, sum(cost), sum(usage) FROM
(
  SELECT bucket AS hour, arraySum(summary.cost) AS cost, arraySum(summary.usage) AS usage
  FROM usage_hourly FINAL WHERE ${OF_WINDOW} AND bucket < {sealed: UInt32}
  UNION ALL
  SELECT event_hour AS hour, cost, usage
  FROM usage_events FINAL
  WHERE account_id = {account: String} AND event_hour >= {sealed: UInt32} AND event_hour < {to: UInt32} AND NOT voided
)
GROUP BY hour ORDER BY hour ${SETTINGS}`;

/** The most expensive groups, each with its series and its type, workspace and name where these are the same; and the totals of all groups. */
function firstPage(dimension: string, resolution: string): string {
  const table = resolution === 'hourly' ? 'usage_hourly' : 'usage_daily';
  const shown = ['workspace', 'resource_type', 'resource_name'].filter((name) => name !== dimension);
  const enriched = dimension === 'resource_name' ? shown.slice(0, 2) : shown;
  const common = enriched.map((name) => `if(min(${name}) = max(${name}), min(${name}), '')`);
  const step = resolution === 'hourly' ? 3600 : 86400;
  return `
SELECT [${[dimension, ...common].join(', ')}], sum(of_entry) AS cost, sum(used) AS usage,
       sumMap([toInt32((toUInt32(${table}.bucket) - {from: UInt32}) / ${step})], [of_entry], [used]),
       sum(cost) OVER (), sum(usage) OVER (), count() OVER ()
FROM ${table} FINAL
ARRAY JOIN ${[dimension, ...enriched].map((name) => `detail.${name} AS ${name}`).join(', ')},
           detail.cost AS of_entry, detail.usage AS used
WHERE ${OF_WINDOW}
GROUP BY ${dimension}
ORDER BY cost DESC, ${dimension}
LIMIT ${PAGE}
${SETTINGS}`;
}
