SELECT
  [resource_uuid, if(min(workspace) = max(workspace), min(workspace), ''), if(min(resource_type) = max(resource_type), min(resource_type), ''), if(min(resource_name) = max(resource_name), min(resource_name), '')] AS values,
  sum(entry_cost) AS cost,
  sum(entry_usage) AS usage,
  sumMap([entry_bucket], [entry_cost], [entry_usage]) AS series,
  toUInt32(count() OVER ()) AS total_groups,
  sum(cost) OVER () AS total_cost,
  sum(usage) OVER () AS total_usage,
  sum(sipHash64(resource_uuid, cost, usage)) OVER () AS digest,
  max(max(entry_block)) OVER () AS newest_block
FROM
(
  SELECT
    resource_uuid,
    workspace,
    resource_type,
    resource_name,
    toInt32(dateDiff('month', toDateTime(0, 'UTC'), event_hour) - {axis_start: Int64}) AS entry_bucket,
    sum(usage_events.cost) AS entry_cost,
    sum(usage_events.usage) AS entry_usage,
    max(_block_number) AS entry_block
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
    toInt32(dateDiff('month', toDateTime(0, 'UTC'), usage_hourly.bucket) - {axis_start: Int64}) AS entry_bucket,
    rollup_cost AS entry_cost,
    rollup_usage AS entry_usage,
    toUInt64(0) AS entry_block
  FROM usage_hourly FINAL
  ARRAY JOIN
    detail.resource_uuid AS resource_uuid,
    detail.workspace AS workspace,
    detail.resource_type AS resource_type,
    detail.resource_name AS resource_name,
    detail.cost AS rollup_cost,
    detail.usage AS rollup_usage
  WHERE account_id = {account_id: String}
    AND usage_hourly.bucket >= {from_1: UInt32}
    AND usage_hourly.bucket < {to_1: UInt32}
  UNION ALL
  SELECT
    resource_uuid,
    workspace,
    resource_type,
    resource_name,
    toInt32(dateDiff('month', toDateTime(0, 'UTC'), usage_daily.bucket) - {axis_start: Int64}) AS entry_bucket,
    rollup_cost AS entry_cost,
    rollup_usage AS entry_usage,
    toUInt64(0) AS entry_block
  FROM usage_daily FINAL
  ARRAY JOIN
    detail.resource_uuid AS resource_uuid,
    detail.workspace AS workspace,
    detail.resource_type AS resource_type,
    detail.resource_name AS resource_name,
    detail.cost AS rollup_cost,
    detail.usage AS rollup_usage
  WHERE account_id = {account_id: String}
    AND usage_daily.bucket >= {from_2: UInt32}
    AND usage_daily.bucket < {to_2: UInt32}
  UNION ALL
  SELECT
    resource_uuid,
    workspace,
    resource_type,
    resource_name,
    toInt32(dateDiff('month', toDateTime(0, 'UTC'), usage_hourly.bucket) - {axis_start: Int64}) AS entry_bucket,
    rollup_cost AS entry_cost,
    rollup_usage AS entry_usage,
    toUInt64(0) AS entry_block
  FROM usage_hourly FINAL
  ARRAY JOIN
    detail.resource_uuid AS resource_uuid,
    detail.workspace AS workspace,
    detail.resource_type AS resource_type,
    detail.resource_name AS resource_name,
    detail.cost AS rollup_cost,
    detail.usage AS rollup_usage
  WHERE account_id = {account_id: String}
    AND usage_hourly.bucket >= {from_3: UInt32}
    AND usage_hourly.bucket < {to_3: UInt32}
  UNION ALL
  SELECT
    resource_uuid,
    workspace,
    resource_type,
    resource_name,
    toInt32(dateDiff('month', toDateTime(0, 'UTC'), event_hour) - {axis_start: Int64}) AS entry_bucket,
    sum(usage_events.cost) AS entry_cost,
    sum(usage_events.usage) AS entry_usage,
    max(_block_number) AS entry_block
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
LIMIT {limit: UInt32}
