INSERT INTO result_pages (account_id, result_id, rank, values, cost, usage, series, total_groups, total_cost, total_usage)
SELECT
  {owner: String},
  {result_id: UUID},
  toUInt32(row_number() OVER (ORDER BY cost DESC, resource_name, billing_dimension)),
  [resource_name, billing_dimension, if(min(workspace) = max(workspace), min(workspace), ''), ''] AS values,
  sum(rollup_cost) AS cost,
  sum(rollup_usage) AS usage,
  ([toInt32(0)], [cost], [usage]) AS series,
  toUInt32(count() OVER ()) AS total_groups,
  sum(cost) OVER () AS total_cost,
  sum(usage) OVER () AS total_usage
FROM usage_daily FINAL
ARRAY JOIN
  detail.resource_name AS resource_name,
  detail.billing_dimension AS billing_dimension,
  detail.workspace AS workspace,
  detail.resource_type AS resource_type,
  detail.cost AS rollup_cost,
  detail.usage AS rollup_usage
WHERE account_id = {account_id: String}
  AND usage_daily.bucket >= {from_0: UInt32}
  AND usage_daily.bucket < {to_0: UInt32}
  AND workspace IN {workspace: Array(String)}
  AND resource_type = {resource_type: String}
GROUP BY resource_name, billing_dimension
QUALIFY sum(sipHash64(resource_name, billing_dimension, values, cost, usage, series)) OVER () = {digest: UInt64}
