-- Up to which hour or day the rollups may be read. sealing_until: someone has begun to compute the rows below it, so late
-- events must mark their hours as dirty; sealed_until: queries may trust them. Both only rise: each statement adds a row, and what
-- counts is the maximum.
CREATE TABLE IF NOT EXISTS rollup_watermarks
(
    grain         Enum8('hourly' = 1, 'daily' = 2),
    sealing_until SimpleAggregateFunction(max, DateTime('UTC')),
    sealed_until  SimpleAggregateFunction(max, DateTime('UTC'))
)
ENGINE = AggregatingMergeTree
ORDER BY grain
SETTINGS fsync_after_insert = 1, fsync_part_directory = 1
