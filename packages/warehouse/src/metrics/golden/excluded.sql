SELECT
  [] AS values,
  sum(entry_cost) AS cost,
  sum(entry_usage) AS usage,
  sumMap([entry_bucket], [entry_cost], [entry_usage]) AS series,
  toUInt32(1) AS total_groups,
  cost AS total_cost,
  usage AS total_usage,
  toUInt64(0) AS digest,
  toUInt64(0) AS newest_block
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
    AND workspace = {workspace: String}
    AND workspace != {excluded_workspace: String}
    AND resource_uuid NOT IN {excluded_resource_uuid: Array(String)}
  GROUP BY entry_bucket
  UNION ALL
  SELECT
    toInt32(intDiv(toUInt32(usage_hourly.bucket) - {axis_start: Int64}, 3600)) AS entry_bucket,
    cell_cost AS entry_cost,
    cell_usage AS entry_usage
  FROM usage_hourly FINAL
  ARRAY JOIN
    detail.workspace AS workspace,
    detail.resource_uuid AS resource_uuid,
    detail.cost AS cell_cost,
    detail.usage AS cell_usage
  WHERE account_id = {account_id: String}
    AND usage_hourly.bucket >= {from_1: UInt32}
    AND usage_hourly.bucket < {to_1: UInt32}
    AND workspace = {workspace: String}
    AND workspace != {excluded_workspace: String}
    AND resource_uuid NOT IN {excluded_resource_uuid: Array(String)}
)
