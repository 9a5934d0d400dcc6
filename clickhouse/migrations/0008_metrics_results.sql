-- Answers with more groups than fit a page, ranked, as they were when the first page was asked for. Pages are slices, so
-- no group is skipped, repeated or changed while events keep arriving. What is lost here, or older than a day, is asked
-- for anew: nothing needs to be durable.
CREATE TABLE IF NOT EXISTS metrics_results
(
    -- Whose cursor it is; what one caller has stored lies together and can be counted
    caller        String CODEC(ZSTD(1)),
    result_id     UUID CODEC(ZSTD(1)),
    -- From 1; cost descending, then the dimensions
    rank          UInt32 CODEC(Delta, ZSTD(1)),
    created_at    DateTime('UTC') DEFAULT now() CODEC(ZSTD(1)),
    account_id    LowCardinality(String) CODEC(ZSTD(1)),

    -- Of the dimensions grouped by, then of those that enrich the group
    values        Array(String) CODEC(ZSTD(1)),
    cost          Decimal(38, 12) CODEC(ZSTD(1)),
    usage         Decimal(38, 9) CODEC(ZSTD(1)),
    -- Bucket numbers and amounts; buckets that are not named hold zero
    cost_series   Tuple(Array(Int32), Array(Decimal(38, 12))) CODEC(ZSTD(1)),
    usage_series  Tuple(Array(Int32), Array(Decimal(38, 9))) CODEC(ZSTD(1)),

    -- Of the whole result, the same in every row
    total_cost    Decimal(38, 12) CODEC(ZSTD(1)),
    total_usage   Decimal(38, 9) CODEC(ZSTD(1)),
    total_groups  UInt32 CODEC(ZSTD(1))
)
ENGINE = MergeTree
PARTITION BY toStartOfHour(created_at)
ORDER BY (caller, result_id, rank)
TTL created_at + INTERVAL 25 HOUR
SETTINGS ttl_only_drop_parts = 1, index_granularity = 256
