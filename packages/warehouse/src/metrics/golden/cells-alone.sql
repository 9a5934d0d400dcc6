SELECT
  [] AS values,
  sum(arraySum(summary.cost)) AS cost,
  sum(arraySum(summary.usage)) AS usage,
  sumMap([toInt32(intDiv(toUInt32(usage_daily.bucket) - {axis_start: Int64}, 86400))], [arraySum(summary.cost)], [arraySum(summary.usage)]) AS series,
  toUInt32(1) AS total_groups,
  cost AS total_cost,
  usage AS total_usage,
  toUInt64(0) AS digest,
  toUInt64(0) AS newest_block
FROM usage_daily FINAL
WHERE account_id = {account_id: String}
  AND usage_daily.bucket >= {from_0: UInt32}
  AND usage_daily.bucket < {to_0: UInt32}
