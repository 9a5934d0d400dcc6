SELECT
  [] AS values,
  sum(entry_cost) AS cost,
  sum(entry_usage) AS usage,
  sumMap([entry_bucket], [entry_cost], [entry_usage]) AS series,
  toUInt32(count() OVER ()) AS total_groups,
  sum(cost) OVER () AS total_cost,
  sum(usage) OVER () AS total_usage,
  sum(sipHash64(cost, usage)) OVER () AS digest,
  max(max(entry_block)) OVER () AS newest_block
FROM
(
  SELECT
    toInt32(intDiv(toUInt32(event_hour) - {axis_start: Int64}, 3600)) AS entry_bucket,
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
    AND workspace = {workspace: String}
    AND workspace != {excluded_workspace: String}
    AND resource_uuid NOT IN {excluded_resource_uuid: Array(String)}
  GROUP BY entry_bucket
  UNION ALL
  SELECT
    toInt32(intDiv(toUInt32(usage_hourly.bucket) - {axis_start: Int64}, 3600)) AS entry_bucket,
    rollup_cost AS entry_cost,
    rollup_usage AS entry_usage,
    toUInt64(0) AS entry_block
  FROM usage_hourly FINAL
  ARRAY JOIN
    detail.workspace AS workspace,
    detail.resource_uuid AS resource_uuid,
    detail.cost AS rollup_cost,
    detail.usage AS rollup_usage
  WHERE account_id = {account_id: String}
    AND usage_hourly.bucket >= {from_1: UInt32}
    AND usage_hourly.bucket < {to_1: UInt32}
    AND workspace = {workspace: String}
    AND workspace != {excluded_workspace: String}
    AND resource_uuid NOT IN {excluded_resource_uuid: Array(String)}
)
ORDER BY cost DESC
LIMIT {limit: UInt32}
