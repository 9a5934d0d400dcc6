-- Derived from usage_hourly: what one account used in one day, as one row of arrays. A row is one complete
-- snapshot, so a reader never sees half of one; the higher version is the later snapshot, so FINAL keeps the newest,
-- whoever wrote it, in whatever order. version = the sum of its hours' versions.
CREATE TABLE IF NOT EXISTS usage_daily
(
    account_id                 LowCardinality(String) CODEC(ZSTD(1)),
    bucket                     DateTime('UTC') CODEC(Delta, ZSTD(1)),
    version                    UInt128 CODEC(ZSTD(1)),

    -- By three of the dimensions: what most queries group and filter by
    `summary.workspace`         Array(LowCardinality(String)) CODEC(ZSTD(1)),
    `summary.resource_type`     Array(LowCardinality(String)) CODEC(ZSTD(1)),
    `summary.billing_dimension` Array(LowCardinality(String)) CODEC(ZSTD(1)),
    `summary.usage`             Array(Decimal(38, 9)) CODEC(ZSTD(1)),
    `summary.cost`              Array(Decimal(38, 12)) CODEC(ZSTD(1)),
    `summary.events`            Array(UInt64) CODEC(ZSTD(1)),

    -- By all five
    `detail.workspace`          Array(LowCardinality(String)) CODEC(ZSTD(1)),
    `detail.resource_type`      Array(LowCardinality(String)) CODEC(ZSTD(1)),
    `detail.resource_name`      Array(LowCardinality(String)) CODEC(ZSTD(1)),
    `detail.resource_uuid`      Array(LowCardinality(String)) CODEC(ZSTD(1)),
    `detail.billing_dimension`  Array(LowCardinality(String)) CODEC(ZSTD(1)),
    `detail.usage`              Array(Decimal(38, 9)) CODEC(ZSTD(1)),
    `detail.cost`               Array(Decimal(38, 12)) CODEC(ZSTD(1)),
    `detail.events`             Array(UInt64) CODEC(ZSTD(1))
)
ENGINE = ReplacingMergeTree(version)
PARTITION BY toYYYYMM(bucket)
ORDER BY (account_id, bucket)
-- A recomputed row is durable before its hours are cleared in dirty_hours. Each row is many groups, so few rows lie between
-- two marks of the index.
SETTINGS fsync_after_insert = 1, fsync_part_directory = 1, index_granularity = 64
