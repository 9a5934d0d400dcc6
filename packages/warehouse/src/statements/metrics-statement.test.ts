import { describe, expect, it } from '@jest/globals';
import { type DecimalText, isDecimalText } from '@meterline/catalog';
import { type MetricsQuestion, metricsStatement } from './metrics.js';

const QUESTION: MetricsQuestion = {
  accountId: 'acme',
  window: { startTime: Date.UTC(2025, 9, 1, 0, 30), endTime: Date.UTC(2025, 9, 2) },
  filters: {},
  resolution: 'hourly',
  groupBy: [],
  limit: 100,
};
const WINDOW = { start_time: 1_759_278_600_000, end_time: 1_759_363_200_000 };

const BY_NOTHING_HOURLY = `
SELECT *
FROM
(
  SELECT
    *,
    sum(cost) OVER () AS total_cost,
    sum(usage) OVER () AS total_usage
  FROM
  (
    SELECT
      sum(cell_cost) AS cost,
      sum(cell_usage) AS usage,
      sumMap([bucket], [cell_cost]) AS cost_series,
      sumMap([bucket], [cell_usage]) AS usage_series
    FROM
    (
      SELECT
        toInt32(intDiv(toInt64(toUnixTimestamp(event_hour)) - {axis_start: Int64}, 3600)) AS bucket,
        sum(usage_events.cost) AS cell_cost,
        sum(usage_events.usage) AS cell_usage
      FROM usage_events FINAL
      WHERE account_id = {account_id: String}
      AND event_hour >= toStartOfHour(fromUnixTimestamp64Milli({start_time: Int64}, 'UTC'))
      AND event_hour <= toDateTime(intDiv({end_time: Int64} - 1, 1000), 'UTC')
      AND timestamp >= fromUnixTimestamp64Milli({start_time: Int64}, 'UTC')
      AND timestamp < fromUnixTimestamp64Milli({end_time: Int64}, 'UTC')
      AND NOT voided
      GROUP BY bucket
    )
  )
)
ORDER BY cost DESC
LIMIT {limit: UInt32}`;

const BY_UUID_MONTHLY = `
SELECT *
FROM
(
  SELECT
    *,
    sum(cost) OVER () AS total_cost,
    sum(usage) OVER () AS total_usage
  FROM
  (
    SELECT
      resource_uuid,
      if(sum(cell_cost) = 0, min(workspace), sumMap([workspace], [cell_cost]).1[indexOf(sumMap([workspace], [cell_cost]).2, arrayMax(sumMap([workspace], [cell_cost]).2))]) AS top_workspace,
      if(sum(cell_cost) = 0, min(resource_type), sumMap([resource_type], [cell_cost]).1[indexOf(sumMap([resource_type], [cell_cost]).2, arrayMax(sumMap([resource_type], [cell_cost]).2))]) AS top_resource_type,
      if(sum(cell_cost) = 0, min(resource_name), sumMap([resource_name], [cell_cost]).1[indexOf(sumMap([resource_name], [cell_cost]).2, arrayMax(sumMap([resource_name], [cell_cost]).2))]) AS top_resource_name,
      sum(cell_cost) AS cost,
      sum(cell_usage) AS usage,
      sumMap([bucket], [cell_cost]) AS cost_series,
      sumMap([bucket], [cell_usage]) AS usage_series
    FROM
    (
      SELECT
        CAST(resource_uuid, 'String') AS resource_uuid,
        CAST(workspace, 'String') AS workspace,
        CAST(resource_type, 'String') AS resource_type,
        CAST(resource_name, 'String') AS resource_name,
        toInt32(dateDiff('month', toDateTime({axis_start: Int64}, 'UTC'), event_hour)) AS bucket,
        sum(usage_events.cost) AS cell_cost,
        sum(usage_events.usage) AS cell_usage
      FROM usage_events FINAL
      WHERE account_id = {account_id: String}
      AND event_hour >= toStartOfHour(fromUnixTimestamp64Milli({start_time: Int64}, 'UTC'))
      AND event_hour <= toDateTime(intDiv({end_time: Int64} - 1, 1000), 'UTC')
      AND timestamp >= fromUnixTimestamp64Milli({start_time: Int64}, 'UTC')
      AND timestamp < fromUnixTimestamp64Milli({end_time: Int64}, 'UTC')
      AND NOT voided
      GROUP BY resource_uuid, workspace, resource_type, resource_name, bucket
    )
    GROUP BY resource_uuid
  )
)
ORDER BY cost DESC, resource_uuid
LIMIT {limit: UInt32}`;

const BY_THREE_WEEKLY_FILTERED_AFTER = `
SELECT *
FROM
(
  SELECT
    *,
    sum(cost) OVER () AS total_cost,
    sum(usage) OVER () AS total_usage
  FROM
  (
    SELECT
      workspace,
      resource_name,
      billing_dimension,
      if(sum(cell_cost) = 0, min(resource_type), sumMap([resource_type], [cell_cost]).1[indexOf(sumMap([resource_type], [cell_cost]).2, arrayMax(sumMap([resource_type], [cell_cost]).2))]) AS top_resource_type,
      sum(cell_cost) AS cost,
      sum(cell_usage) AS usage,
      sumMap([bucket], [cell_cost]) AS cost_series,
      sumMap([bucket], [cell_usage]) AS usage_series
    FROM
    (
      SELECT
        CAST(workspace, 'String') AS workspace,
        CAST(resource_name, 'String') AS resource_name,
        CAST(billing_dimension, 'String') AS billing_dimension,
        CAST(resource_type, 'String') AS resource_type,
        toInt32(intDiv(toInt64(toUnixTimestamp(event_hour)) - {axis_start: Int64}, 604800)) AS bucket,
        sum(usage_events.cost) AS cell_cost,
        sum(usage_events.usage) AS cell_usage
      FROM usage_events FINAL
      WHERE account_id = {account_id: String}
      AND event_hour >= toStartOfHour(fromUnixTimestamp64Milli({start_time: Int64}, 'UTC'))
      AND event_hour <= toDateTime(intDiv({end_time: Int64} - 1, 1000), 'UTC')
      AND timestamp >= fromUnixTimestamp64Milli({start_time: Int64}, 'UTC')
      AND timestamp < fromUnixTimestamp64Milli({end_time: Int64}, 'UTC')
      AND NOT voided
      AND workspace = {workspace: String}
      AND billing_dimension = {billing_dimension: String}
      GROUP BY workspace, resource_name, billing_dimension, resource_type, bucket
    )
    GROUP BY workspace, resource_name, billing_dimension
  )
)
WHERE cost < {after_cost: Decimal(38, 12)} OR (cost = {after_cost: Decimal(38, 12)} AND tuple(toString(workspace), toString(resource_name), toString(billing_dimension)) > tuple({after_0: String}, {after_1: String}, {after_2: String}))
ORDER BY cost DESC, workspace, resource_name, billing_dimension
LIMIT {limit: UInt32}`;

describe('the metrics statement', () => {
  it('for no groupBy sums everything by hour', () => {
    expect(metricsStatement(QUESTION)).toEqual({
      name: 'read_metrics',
      query: BY_NOTHING_HOURLY,
      query_params: { account_id: 'acme', ...WINDOW, axis_start: Date.UTC(2025, 9, 1) / 1000, limit: 100 },
    });
  });

  it('for one dimension adds those that it enriches', () => {
    expect(metricsStatement({ ...QUESTION, groupBy: ['resource_uuid'], resolution: 'monthly' })).toEqual({
      name: 'read_metrics',
      query: BY_UUID_MONTHLY,
      query_params: { account_id: 'acme', ...WINDOW, axis_start: Date.UTC(2025, 9, 1) / 1000, limit: 100 },
    });
  });

  it('for three dimensions, with filters and a place to go on after, has every value as a parameter', () => {
    const statement = metricsStatement({
      ...QUESTION,
      groupBy: ['workspace', 'resource_name', 'billing_dimension'],
      resolution: 'weekly',
      filters: { workspace: "it's", billing_dimension: 'volume_storage_gbs' },
      after: { cost: decimal('1.5'), values: ['a', 'b', 'c'] },
      limit: 5,
    });
    expect(statement).toEqual({
      name: 'read_metrics',
      query: BY_THREE_WEEKLY_FILTERED_AFTER,
      query_params: {
        account_id: 'acme',
        ...WINDOW,
        workspace: "it's",
        billing_dimension: 'volume_storage_gbs',
        axis_start: Date.UTC(2025, 8, 29) / 1000,
        limit: 5,
        after_cost: '1.5',
        after_0: 'a',
        after_1: 'b',
        after_2: 'c',
      },
    });
  });

  it('has the daily index of a bucket', () => {
    expect(metricsStatement({ ...QUESTION, resolution: 'daily' }).query).toBe(
      BY_NOTHING_HOURLY.replace('{axis_start: Int64}, 3600', '{axis_start: Int64}, 86400'),
    );
  });
});

function decimal(text: string): DecimalText {
  if (!isDecimalText(text)) throw new Error(`${text} is not a decimal`);
  return text;
}
