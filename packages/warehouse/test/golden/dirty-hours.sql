SELECT
  [workspace] AS values,
  sum(entry_cost) AS cost,
  sum(entry_usage) AS usage,
  sumMap([entry_bucket], [entry_cost], [entry_usage]) AS series,
  toUInt32(count() OVER ()) AS total_groups,
  sum(cost) OVER () AS total_cost,
  sum(usage) OVER () AS total_usage,
  sum(sipHash64(workspace, cost, usage)) OVER () AS digest,
  max(max(entry_block)) OVER () AS newest_block
FROM
(
  SELECT
    workspace,
    toInt32(intDiv(toUInt32(usage_hourly.bucket) - {axis_start: Int64}, 86400)) AS entry_bucket,
    rollup_cost AS entry_cost,
    rollup_usage AS entry_usage,
    toUInt64(0) AS entry_block
  FROM usage_hourly FINAL
  ARRAY JOIN
    summary.workspace AS workspace,
    summary.cost AS rollup_cost,
    summary.usage AS rollup_usage
  WHERE account_id = {account_id: String}
    AND usage_hourly.bucket >= {from_0: UInt32}
    AND usage_hourly.bucket < {to_0: UInt32}
    AND usage_hourly.bucket NOT IN {except_0: Array(UInt32)}
  UNION ALL
  SELECT
    workspace,
    toInt32(intDiv(toUInt32(usage_daily.bucket) - {axis_start: Int64}, 86400)) AS entry_bucket,
    rollup_cost AS entry_cost,
    rollup_usage AS entry_usage,
    toUInt64(0) AS entry_block
  FROM usage_daily FINAL
  ARRAY JOIN
    summary.workspace AS workspace,
    summary.cost AS rollup_cost,
    summary.usage AS rollup_usage
  WHERE account_id = {account_id: String}
    AND usage_daily.bucket >= {from_1: UInt32}
    AND usage_daily.bucket < {to_1: UInt32}
    AND usage_daily.bucket NOT IN {except_1: Array(UInt32)}
  UNION ALL
  SELECT
    workspace,
    toInt32(intDiv(toUInt32(usage_hourly.bucket) - {axis_start: Int64}, 86400)) AS entry_bucket,
    sum(rollup_cost) AS entry_cost,
    sum(rollup_usage) AS entry_usage,
    max(toUInt64(0)) AS entry_block
  FROM usage_hourly FINAL
  ARRAY JOIN
    summary.workspace AS workspace,
    summary.cost AS rollup_cost,
    summary.usage AS rollup_usage
  WHERE account_id = {account_id: String}
    AND usage_hourly.bucket >= {from_2: UInt32}
    AND usage_hourly.bucket < {to_2: UInt32}
    AND toStartOfDay(usage_hourly.bucket) IN {days_2: Array(UInt32)}
    AND usage_hourly.bucket NOT IN {except_2: Array(UInt32)}
  GROUP BY workspace, entry_bucket
  UNION ALL
  SELECT
    workspace,
    toInt32(intDiv(toUInt32(event_hour) - {axis_start: Int64}, 86400)) AS entry_bucket,
    sum(usage_events.cost) AS entry_cost,
    sum(usage_events.usage) AS entry_usage,
    max(_block_number) AS entry_block
  FROM usage_events FINAL
  WHERE account_id = {account_id: String}
    AND event_hour >= {from_3: UInt32}
    AND event_hour < {to_3: UInt32}
    AND event_hour IN {only_3: Array(UInt32)}
    AND NOT voided
  GROUP BY workspace, entry_bucket
)
GROUP BY workspace
ORDER BY cost DESC, workspace
LIMIT {limit: UInt32}
