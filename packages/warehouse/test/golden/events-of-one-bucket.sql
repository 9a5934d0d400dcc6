SELECT
  [resource_uuid, if(min(workspace) = max(workspace), min(workspace), ''), if(min(resource_type) = max(resource_type), min(resource_type), ''), if(min(resource_name) = max(resource_name), min(resource_name), '')] AS values,
  sum(usage_events.cost) AS cost,
  sum(usage_events.usage) AS usage,
  ([toInt32(0)], [cost], [usage]) AS series,
  toUInt32(count() OVER ()) AS total_groups,
  sum(cost) OVER () AS total_cost,
  sum(usage) OVER () AS total_usage,
  sum(sipHash64(resource_uuid, values, cost, usage, series)) OVER () AS digest,
  max(max(_block_number)) OVER () AS newest_block
FROM usage_events FINAL
PREWHERE _block_number <= {as_of: UInt64}
WHERE account_id = {account_id: String}
  AND event_hour >= {from_0: UInt32}
  AND event_hour < {to_0: UInt32}
  AND NOT voided
  AND workspace = {workspace: String}
GROUP BY resource_uuid
ORDER BY cost DESC, resource_uuid
LIMIT {limit: UInt32}
