import { describe, expect, it } from '@jest/globals';
import { type MetricsQuestion, metricsStatement } from './statement.js';
import { storeMetricsStatement } from './stored-pages.js';

const HALF_PAST = Date.UTC(2025, 9, 1, 0, 30);
const QUESTION: MetricsQuestion = {
  accountId: 'acme',
  window: { startTime: HALF_PAST, endTime: Date.UTC(2025, 9, 2) },
  filters: {},
  resolution: 'hourly',
  groupBy: [],
  limit: 100,
};

const TRUTH_ALONE = `
SELECT
  [] AS values,
  sum(entry_cost) AS cost,
  sum(entry_usage) AS usage,
  sumMap([entry_bucket], [entry_cost], [entry_usage]) AS series,
  toUInt32(1) AS total_groups
FROM
(
  SELECT
    toInt32(intDiv(toUInt32(event_hour) - {axis_start: Int64}, 3600)) AS entry_bucket,
    sum(usage_events.cost) AS entry_cost,
    sum(usage_events.usage) AS entry_usage
  FROM usage_events FINAL
  WHERE account_id = {account_id: String}
    AND event_hour >= toStartOfHour(fromUnixTimestamp64Milli({from_0: Int64}, 'UTC'))
    AND event_hour <= toDateTime(intDiv({to_0: Int64} - 1, 1000), 'UTC')
    AND timestamp >= fromUnixTimestamp64Milli({from_0: Int64}, 'UTC')
    AND timestamp < fromUnixTimestamp64Milli({to_0: Int64}, 'UTC')
    AND NOT voided
  GROUP BY entry_bucket
)`;

const CELLS_ALONE = `
SELECT
  [] AS values,
  sum(arraySum(summary.cost)) AS cost,
  sum(arraySum(summary.usage)) AS usage,
  sumMap([toInt32(intDiv(toUInt32(usage_daily.bucket) - {axis_start: Int64}, 86400))], [arraySum(summary.cost)], [arraySum(summary.usage)]) AS series,
  toUInt32(1) AS total_groups
FROM usage_daily FINAL
WHERE account_id = {account_id: String}
  AND usage_daily.bucket >= {from_0: UInt32}
  AND usage_daily.bucket < {to_0: UInt32}`;

const EVERY_SOURCE = `
SELECT
  [resource_uuid, if(sum(entry_cost) = 0, min(workspace), sumMap([CAST(workspace, 'String')], [entry_cost]).1[indexOf(sumMap([CAST(workspace, 'String')], [entry_cost]).2, arrayMax(sumMap([CAST(workspace, 'String')], [entry_cost]).2))]), if(sum(entry_cost) = 0, min(resource_type), sumMap([CAST(resource_type, 'String')], [entry_cost]).1[indexOf(sumMap([CAST(resource_type, 'String')], [entry_cost]).2, arrayMax(sumMap([CAST(resource_type, 'String')], [entry_cost]).2))]), if(sum(entry_cost) = 0, min(resource_name), sumMap([CAST(resource_name, 'String')], [entry_cost]).1[indexOf(sumMap([CAST(resource_name, 'String')], [entry_cost]).2, arrayMax(sumMap([CAST(resource_name, 'String')], [entry_cost]).2))])] AS values,
  sum(entry_cost) AS cost,
  sum(entry_usage) AS usage,
  sumMap([entry_bucket], [entry_cost], [entry_usage]) AS series,
  toUInt32(count() OVER ()) AS total_groups
FROM
(
  SELECT
    resource_uuid,
    workspace,
    resource_type,
    resource_name,
    toInt32(dateDiff('month', toDateTime({axis_start: Int64}, 'UTC'), event_hour)) AS entry_bucket,
    sum(usage_events.cost) AS entry_cost,
    sum(usage_events.usage) AS entry_usage
  FROM usage_events FINAL
  WHERE account_id = {account_id: String}
    AND event_hour >= toStartOfHour(fromUnixTimestamp64Milli({from_0: Int64}, 'UTC'))
    AND event_hour <= toDateTime(intDiv({to_0: Int64} - 1, 1000), 'UTC')
    AND timestamp >= fromUnixTimestamp64Milli({from_0: Int64}, 'UTC')
    AND timestamp < fromUnixTimestamp64Milli({to_0: Int64}, 'UTC')
    AND NOT voided
  GROUP BY resource_uuid, workspace, resource_type, resource_name, entry_bucket
  UNION ALL
  SELECT
    resource_uuid,
    workspace,
    resource_type,
    resource_name,
    toInt32(dateDiff('month', toDateTime({axis_start: Int64}, 'UTC'), usage_hourly.bucket)) AS entry_bucket,
    cell_cost AS entry_cost,
    cell_usage AS entry_usage
  FROM usage_hourly FINAL
  ARRAY JOIN
    detail.resource_uuid AS resource_uuid,
    detail.workspace AS workspace,
    detail.resource_type AS resource_type,
    detail.resource_name AS resource_name,
    detail.cost AS cell_cost,
    detail.usage AS cell_usage
  WHERE account_id = {account_id: String}
    AND usage_hourly.bucket >= {from_1: UInt32}
    AND usage_hourly.bucket < {to_1: UInt32}
  UNION ALL
  SELECT
    resource_uuid,
    workspace,
    resource_type,
    resource_name,
    toInt32(dateDiff('month', toDateTime({axis_start: Int64}, 'UTC'), usage_daily.bucket)) AS entry_bucket,
    cell_cost AS entry_cost,
    cell_usage AS entry_usage
  FROM usage_daily FINAL
  ARRAY JOIN
    detail.resource_uuid AS resource_uuid,
    detail.workspace AS workspace,
    detail.resource_type AS resource_type,
    detail.resource_name AS resource_name,
    detail.cost AS cell_cost,
    detail.usage AS cell_usage
  WHERE account_id = {account_id: String}
    AND usage_daily.bucket >= {from_2: UInt32}
    AND usage_daily.bucket < {to_2: UInt32}
  UNION ALL
  SELECT
    resource_uuid,
    workspace,
    resource_type,
    resource_name,
    toInt32(dateDiff('month', toDateTime({axis_start: Int64}, 'UTC'), usage_hourly.bucket)) AS entry_bucket,
    cell_cost AS entry_cost,
    cell_usage AS entry_usage
  FROM usage_hourly FINAL
  ARRAY JOIN
    detail.resource_uuid AS resource_uuid,
    detail.workspace AS workspace,
    detail.resource_type AS resource_type,
    detail.resource_name AS resource_name,
    detail.cost AS cell_cost,
    detail.usage AS cell_usage
  WHERE account_id = {account_id: String}
    AND usage_hourly.bucket >= {from_3: UInt32}
    AND usage_hourly.bucket < {to_3: UInt32}
  UNION ALL
  SELECT
    resource_uuid,
    workspace,
    resource_type,
    resource_name,
    toInt32(dateDiff('month', toDateTime({axis_start: Int64}, 'UTC'), event_hour)) AS entry_bucket,
    sum(usage_events.cost) AS entry_cost,
    sum(usage_events.usage) AS entry_usage
  FROM usage_events FINAL
  WHERE account_id = {account_id: String}
    AND event_hour >= toStartOfHour(fromUnixTimestamp64Milli({from_4: Int64}, 'UTC'))
    AND event_hour <= toDateTime(intDiv({to_4: Int64} - 1, 1000), 'UTC')
    AND timestamp >= fromUnixTimestamp64Milli({from_4: Int64}, 'UTC')
    AND timestamp < fromUnixTimestamp64Milli({to_4: Int64}, 'UTC')
    AND NOT voided
  GROUP BY resource_uuid, workspace, resource_type, resource_name, entry_bucket
)
GROUP BY resource_uuid
ORDER BY cost DESC, resource_uuid
LIMIT {limit: UInt32}`;

const STORED = `
INSERT INTO metrics_results (caller, result_id, account_id, rank, values, cost, usage, total_groups, total_cost, total_usage, cost_series, usage_series)
SELECT
  {caller: String},
  {result_id: UUID},
  {account_id: String},
  toUInt32(row_number() OVER (ORDER BY cost DESC, workspace, billing_dimension)),
  [workspace, billing_dimension, ''] AS values,
  sum(entry_cost) AS cost,
  sum(entry_usage) AS usage,
  toUInt32(count() OVER ()) AS total_groups,
  sum(cost) OVER () AS total_cost,
  sum(usage) OVER () AS total_usage,
  ((sumMap([entry_bucket], [entry_cost], [entry_usage]) AS series).1, series.2),
  (series.1, series.3)
FROM
(
  SELECT
    workspace,
    billing_dimension,
    toInt32(intDiv(toUInt32(usage_daily.bucket) - {axis_start: Int64}, 604800)) AS entry_bucket,
    cell_cost AS entry_cost,
    cell_usage AS entry_usage
  FROM usage_daily FINAL
  ARRAY JOIN
    summary.workspace AS workspace,
    summary.billing_dimension AS billing_dimension,
    summary.resource_type AS resource_type,
    summary.cost AS cell_cost,
    summary.usage AS cell_usage
  WHERE account_id = {account_id: String}
    AND usage_daily.bucket >= {from_0: UInt32}
    AND usage_daily.bucket < {to_0: UInt32}
    AND workspace = {workspace: String}
    AND resource_type = {resource_type: String}
  UNION ALL
  SELECT
    workspace,
    billing_dimension,
    toInt32(intDiv(toUInt32(usage_hourly.bucket) - {axis_start: Int64}, 604800)) AS entry_bucket,
    cell_cost AS entry_cost,
    cell_usage AS entry_usage
  FROM usage_hourly FINAL
  ARRAY JOIN
    summary.workspace AS workspace,
    summary.billing_dimension AS billing_dimension,
    summary.resource_type AS resource_type,
    summary.cost AS cell_cost,
    summary.usage AS cell_usage
  WHERE account_id = {account_id: String}
    AND usage_hourly.bucket >= {from_1: UInt32}
    AND usage_hourly.bucket < {to_1: UInt32}
    AND workspace = {workspace: String}
    AND resource_type = {resource_type: String}
  UNION ALL
  SELECT
    workspace,
    billing_dimension,
    toInt32(intDiv(toUInt32(event_hour) - {axis_start: Int64}, 604800)) AS entry_bucket,
    sum(usage_events.cost) AS entry_cost,
    sum(usage_events.usage) AS entry_usage
  FROM usage_events FINAL
  WHERE account_id = {account_id: String}
    AND event_hour >= {from_2: UInt32}
    AND event_hour < {to_2: UInt32}
    AND NOT voided
    AND workspace = {workspace: String}
    AND resource_type = {resource_type: String}
  GROUP BY workspace, billing_dimension, entry_bucket
)
GROUP BY workspace, billing_dimension
QUALIFY total_groups <= {most: UInt64}`;

/** As {@link Date.UTC}. */
function seconds(year: number, month: number, day: number, hour = 0): number {
  return Date.UTC(year, month, day, hour) / 1000;
}

describe('the metrics statement', () => {
  it('without seals reads the truth alone', () => {
    expect(metricsStatement(QUESTION)).toEqual({
      name: 'read_metrics',
      query: TRUTH_ALONE,
      query_params: {
        account_id: 'acme',
        from_0: HALF_PAST,
        to_0: Date.UTC(2025, 9, 2),
        axis_start: Date.UTC(2025, 9, 1) / 1000,
        limit: 100,
      },
    });
  });

  it('has the daily index of a bucket', () => {
    expect(metricsStatement({ ...QUESTION, resolution: 'daily' }).query).toBe(
      TRUTH_ALONE.replace('{axis_start: Int64}, 3600', '{axis_start: Int64}, 86400'),
    );
  });

  it('reads cells that answer alone without a subquery', () => {
    const day = { startTime: Date.UTC(2025, 9, 1), endTime: Date.UTC(2025, 9, 2) };
    const sealed = { hourly: day.endTime, daily: day.endTime };
    expect(metricsStatement({ ...QUESTION, window: day, resolution: 'daily', sealed })).toEqual({
      name: 'read_metrics',
      query: CELLS_ALONE,
      query_params: {
        account_id: 'acme',
        from_0: seconds(2025, 9, 1),
        to_0: seconds(2025, 9, 2),
        axis_start: seconds(2025, 9, 1),
        limit: 100,
      },
    });
  });

  it('for one dimension adds those that it enriches, and reads each part of the window where it is known', () => {
    const statement = metricsStatement({
      ...QUESTION,
      window: { startTime: HALF_PAST, endTime: Date.UTC(2025, 9, 4, 12, 30) },
      groupBy: ['resource_uuid'],
      resolution: 'monthly',
      sealed: { hourly: Date.UTC(2025, 9, 4, 12), daily: Date.UTC(2025, 9, 4) },
    });
    expect(statement).toEqual({
      name: 'read_metrics',
      query: EVERY_SOURCE,
      query_params: {
        account_id: 'acme',
        from_0: HALF_PAST,
        to_0: Date.UTC(2025, 9, 1, 1),
        from_1: seconds(2025, 9, 1, 1),
        to_1: seconds(2025, 9, 2),
        from_2: seconds(2025, 9, 2),
        to_2: seconds(2025, 9, 4),
        from_3: seconds(2025, 9, 4),
        to_3: seconds(2025, 9, 4, 12),
        from_4: Date.UTC(2025, 9, 4, 12),
        to_4: Date.UTC(2025, 9, 4, 12, 30),
        axis_start: Date.UTC(2025, 9, 1) / 1000,
        limit: 100,
      },
    });
  });
});

it('the statement that stores a ranking has every value as a parameter', () => {
  const statement = storeMetricsStatement({
    ...QUESTION,
    window: { startTime: Date.UTC(2025, 9, 1), endTime: Date.UTC(2025, 9, 3) },
    groupBy: ['workspace', 'billing_dimension'],
    resolution: 'weekly',
    filters: { workspace: "it's", resource_type: 'agent' },
    sealed: { hourly: Date.UTC(2025, 9, 2, 1), daily: Date.UTC(2025, 9, 2) },
  });
  expect(statement).toEqual({
    name: 'store_metrics',
    query: STORED,
    query_params: {
      account_id: 'acme',
      workspace: "it's",
      resource_type: 'agent',
      from_0: seconds(2025, 9, 1),
      to_0: seconds(2025, 9, 2),
      from_1: seconds(2025, 9, 2),
      to_1: seconds(2025, 9, 2, 1),
      from_2: seconds(2025, 9, 2, 1),
      to_2: seconds(2025, 9, 3),
      axis_start: Date.UTC(2025, 8, 29) / 1000,
    },
  });
});
