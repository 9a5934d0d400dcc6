INSERT INTO result_pages (account_id, result_id, rank, values, cost, usage, total_groups, total_cost, total_usage, series)
SELECT
  {owner: String},
  {result_id: UUID},
  toUInt32(row_number() OVER (ORDER BY cost DESC, workspace, billing_dimension)),
  [workspace, billing_dimension, ''] AS values,
  sum(entry_cost) AS cost,
  sum(entry_usage) AS usage,
  toUInt32(count() OVER ()) AS total_groups,
  sum(cost) OVER () AS total_cost,
  sum(usage) OVER () AS total_usage,
  ([toInt32(0)], [cost], [usage])
FROM
(
  SELECT
    workspace,
    billing_dimension,
    toInt32(intDiv(toUInt32(usage_daily.bucket) - {axis_start: Int64}, 604800)) AS entry_bucket,
    rollup_cost AS entry_cost,
    rollup_usage AS entry_usage,
    toUInt64(0) AS entry_block
  FROM usage_daily FINAL
  ARRAY JOIN
    summary.workspace AS workspace,
    summary.billing_dimension AS billing_dimension,
    summary.resource_type AS resource_type,
    summary.cost AS rollup_cost,
    summary.usage AS rollup_usage
  WHERE account_id = {account_id: String}
    AND usage_daily.bucket >= {from_0: UInt32}
    AND usage_daily.bucket < {to_0: UInt32}
    AND workspace IN {workspace: Array(String)}
    AND resource_type = {resource_type: String}
  UNION ALL
  SELECT
    workspace,
    billing_dimension,
    toInt32(intDiv(toUInt32(usage_hourly.bucket) - {axis_start: Int64}, 604800)) AS entry_bucket,
    rollup_cost AS entry_cost,
    rollup_usage AS entry_usage,
    toUInt64(0) AS entry_block
  FROM usage_hourly FINAL
  ARRAY JOIN
    summary.workspace AS workspace,
    summary.billing_dimension AS billing_dimension,
    summary.resource_type AS resource_type,
    summary.cost AS rollup_cost,
    summary.usage AS rollup_usage
  WHERE account_id = {account_id: String}
    AND usage_hourly.bucket >= {from_1: UInt32}
    AND usage_hourly.bucket < {to_1: UInt32}
    AND workspace IN {workspace: Array(String)}
    AND resource_type = {resource_type: String}
  UNION ALL
  SELECT
    workspace,
    billing_dimension,
    toInt32(intDiv(toUInt32(event_hour) - {axis_start: Int64}, 604800)) AS entry_bucket,
    sum(usage_events.cost) AS entry_cost,
    sum(usage_events.usage) AS entry_usage,
    max(_block_number) AS entry_block
  FROM usage_events FINAL
  PREWHERE _block_number <= {as_of: UInt64}
  WHERE account_id = {account_id: String}
    AND event_hour >= {from_2: UInt32}
    AND event_hour < {to_2: UInt32}
    AND NOT voided
    AND workspace IN {workspace: Array(String)}
    AND resource_type = {resource_type: String}
  GROUP BY workspace, billing_dimension, entry_bucket
)
GROUP BY workspace, billing_dimension
QUALIFY sum(sipHash64(workspace, billing_dimension, cost, usage)) OVER () = {digest: UInt64}
