-- Results with more groups than fit a page, ranked, as they were when the first page was computed. Stored when the second page
-- is read; pages are slices, so no group is skipped, repeated or changed while events keep arriving. What is lost here, or
-- older than a day, is computed again: nothing needs to be durable.
CREATE TABLE IF NOT EXISTS result_pages
(
    account_id    LowCardinality(String) CODEC(ZSTD(1)),
    result_id     UUID CODEC(ZSTD(1)),
    -- From 1; cost descending, then the dimensions
    rank          UInt32 CODEC(Delta, ZSTD(1)),
    created_at    DateTime('UTC') DEFAULT now() CODEC(ZSTD(1)),

    -- Of the dimensions grouped by, then of those that enrich the group
    values        Array(String) CODEC(ZSTD(1)),
    cost          Decimal(38, 12) CODEC(ZSTD(1)),
    usage         Decimal(38, 9) CODEC(ZSTD(1)),
    -- Bucket numbers, their costs and usages; buckets that are not named hold zero
    series        Tuple(Array(Int32), Array(Decimal(38, 12)), Array(Decimal(38, 9))) CODEC(ZSTD(1)),

    -- Of the whole result, the same in every row
    total_cost    Decimal(38, 12) CODEC(ZSTD(1)),
    total_usage   Decimal(38, 9) CODEC(ZSTD(1)),
    total_groups  UInt32 CODEC(ZSTD(1))
)
ENGINE = MergeTree
PARTITION BY toStartOfHour(created_at)
ORDER BY (account_id, result_id, rank)
TTL created_at + INTERVAL 25 HOUR
SETTINGS ttl_only_drop_parts = 1, index_granularity = 256
