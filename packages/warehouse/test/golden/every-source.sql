SELECT
  [account_id, workspace] AS values,
  sum(entry_cost) AS cost,
  sum(entry_usage) AS usage,
  sumMap([entry_bucket], [entry_cost], [entry_usage]) AS series,
  toUInt32(count() OVER ()) AS total_groups,
  sum(cost) OVER () AS total_cost,
  sum(usage) OVER () AS total_usage,
  sum(sipHash64(account_id, workspace, values, cost, usage, series)) OVER () AS digest,
  max(max(entry_block)) OVER () AS newest_block
FROM
(
  SELECT
    account_id,
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
  WHERE account_id IN {accounts: Array(String)}
    AND usage_daily.bucket >= {from_0: UInt32}
    AND usage_daily.bucket < {to_0: UInt32}
    AND (account_id, usage_daily.bucket) NOT IN {except_0: Array(Tuple(String, DateTime('UTC')))}
    AND account_id != {excluded_account: String}
  UNION ALL
  SELECT
    account_id,
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
  WHERE account_id IN {accounts: Array(String)}
    AND usage_hourly.bucket >= {from_1: UInt32}
    AND usage_hourly.bucket < {to_1: UInt32}
    AND account_id != {excluded_account: String}
  UNION ALL
  SELECT
    account_id,
    workspace,
    toInt32(intDiv(toUInt32(event_hour) - {axis_start: Int64}, 86400)) AS entry_bucket,
    sum(usage_events.cost) AS entry_cost,
    sum(usage_events.usage) AS entry_usage,
    max(_block_number) AS entry_block
  FROM usage_events FINAL
  WHERE account_id IN {accounts: Array(String)}
    AND event_hour >= toStartOfHour(fromUnixTimestamp64Milli({from_2: Int64}, 'UTC'))
    AND event_hour <= toDateTime(intDiv({to_2: Int64} - 1, 1000), 'UTC')
    AND timestamp >= fromUnixTimestamp64Milli({from_2: Int64}, 'UTC')
    AND timestamp < fromUnixTimestamp64Milli({to_2: Int64}, 'UTC')
    AND NOT voided
    AND account_id != {excluded_account: String}
  GROUP BY account_id, workspace, entry_bucket
  UNION ALL
  SELECT
    account_id,
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
  WHERE account_id IN {accounts: Array(String)}
    AND usage_hourly.bucket >= {from_3: UInt32}
    AND usage_hourly.bucket < {to_3: UInt32}
    AND (account_id, toStartOfDay(usage_hourly.bucket)) IN {days_3: Array(Tuple(String, DateTime('UTC')))}
    AND (account_id, usage_hourly.bucket) NOT IN {except_3: Array(Tuple(String, DateTime('UTC')))}
    AND account_id != {excluded_account: String}
  GROUP BY account_id, workspace, entry_bucket
  UNION ALL
  SELECT
    account_id,
    workspace,
    toInt32(intDiv(toUInt32(event_hour) - {axis_start: Int64}, 86400)) AS entry_bucket,
    sum(usage_events.cost) AS entry_cost,
    sum(usage_events.usage) AS entry_usage,
    max(_block_number) AS entry_block
  FROM usage_events FINAL
  WHERE account_id IN {accounts: Array(String)}
    AND event_hour >= {from_4: UInt32}
    AND event_hour < {to_4: UInt32}
    AND (account_id, event_hour) IN {only_4: Array(Tuple(String, DateTime('UTC')))}
    AND NOT voided
    AND account_id != {excluded_account: String}
  GROUP BY account_id, workspace, entry_bucket
)
GROUP BY account_id, workspace
ORDER BY cost DESC, account_id, workspace
LIMIT {limit: UInt32}
