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
  GROUP BY entry_bucket
)
