/**
 * The dashboard's requests as SQL, written by hand by an engineer who knows the tables: from cells, with FINAL, only the
 * columns needed, and nothing that an API adds. First pages whose groups must stay the same on the next page are stored
 * and read back here as well, because one statement alone cannot guarantee that.
 */

import { LARGE_ACCOUNT, SEALED_UNTIL } from './corpus.js';
import type { BareClickHouse } from './http-client.js';
import type { Question } from './questions.js';

const PAGE = 100;

/** @returns milliseconds */
export async function askByHand(clickhouse: BareClickHouse, question: Question): Promise<number> {
  const { window, groupBy, isStored, resolution } = question;
  const parameters = {
    account: LARGE_ACCOUNT,
    from: window.startTime / 1000,
    to: window.endTime / 1000,
    sealed: SEALED_UNTIL / 1000,
  };
  if (isStored) {
    const result = crypto.randomUUID();
    const stored = await clickhouse.run(storeByHand(groupBy[0] ?? '', resolution), { ...parameters, result });
    const read = await clickhouse.run(READ_STORED, { result });
    return stored.ms + read.ms;
  }
  const statement = resolution === 'hourly' ? CURRENT_DAY : summaries(groupBy);
  return (await clickhouse.run(statement, parameters)).ms;
}

/** A table separate from Meterline's stored pages, so that neither reads the other's parts. */
export const HAND_STORED_TABLE = 'CREATE TABLE IF NOT EXISTS hand_stored AS metrics_results';

const SETTINGS = 'SETTINGS do_not_merge_across_partitions_select_final = 1';
const OF_WINDOW = 'account_id = {account: String} AND bucket >= {from: UInt32} AND bucket < {to: UInt32}';

/** Rows of group, day, cost and usage, which the caller can add up as needed. */
function summaries(groupBy: readonly string[]): string {
  if (groupBy.length === 0) {
    return `
SELECT bucket, sum(arraySum(summary.cost)), sum(arraySum(summary.usage))
FROM usage_daily FINAL WHERE ${OF_WINDOW} GROUP BY bucket ORDER BY bucket ${SETTINGS} FORMAT JSONCompactEachRow`;
  }
  const dimensions = groupBy.join(', ');
  const joined = groupBy.map((dimension) => `summary.${dimension} AS ${dimension}`).join(', ');
  return `
SELECT ${dimensions}, bucket, sum(cost), sum(usage)
FROM usage_daily FINAL ARRAY JOIN ${joined}, summary.cost AS cost, summary.usage AS usage
WHERE ${OF_WINDOW} GROUP BY ${dimensions}, bucket ORDER BY ${dimensions}, bucket ${SETTINGS} FORMAT JSONCompactEachRow`;
}

/** Sealed hours from cells, the last two from events. */
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
GROUP BY hour ORDER BY hour ${SETTINGS} FORMAT JSONCompactEachRow`;

/** The data of a group on a page: its position, sums and series, and its most expensive type, workspace and name. */
function storeByHand(dimension: string, resolution: string): string {
  const table = resolution === 'hourly' ? 'usage_hourly' : 'usage_daily';
  const shown = ['workspace', 'resource_type', 'resource_name'].filter((name) => name !== dimension);
  const enriched = dimension === 'resource_name' ? shown.slice(0, 2) : shown;
  const top = enriched.map(
    (name) => `arrayMax(arrayZip(sumMap([${name}], [of_entry]).2, sumMap([${name}], [of_entry]).1)).2`,
  );
  const step = resolution === 'hourly' ? 3600 : 86400;
  return `
INSERT INTO hand_stored (caller, result_id, account_id, rank, values, cost, usage, total_cost, total_usage, total_groups,
                         cost_series, usage_series)
SELECT 'hand', {result: UUID}, {account: String}, row_number() OVER (ORDER BY cost DESC, ${dimension}),
       [${[dimension, ...top].join(', ')}], sum(of_entry) AS cost, sum(used) AS usage,
       sum(cost) OVER (), sum(usage) OVER (), count() OVER (),
       ((sumMap([toInt32((toUInt32(${table}.bucket) - {from: UInt32}) / ${step})], [of_entry], [used]) AS series).1, series.2),
       (series.1, series.3)
FROM ${table} FINAL
ARRAY JOIN ${[dimension, ...enriched].map((name) => `detail.${name} AS ${name}`).join(', ')},
           detail.cost AS of_entry, detail.usage AS used
WHERE ${OF_WINDOW}
GROUP BY ${dimension}
${SETTINGS}`;
}

const READ_STORED = `
SELECT values, cost, usage, cost_series, usage_series, total_cost, total_usage, total_groups
FROM hand_stored WHERE caller = 'hand' AND result_id = {result: UUID} AND rank <= ${PAGE}
ORDER BY rank FORMAT JSONCompactEachRow`;
