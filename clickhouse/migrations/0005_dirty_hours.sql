-- Hours of an account whose rollup rows may lack events that are acknowledged. A writer that has stored events into hours that
-- are sealed, or being sealed, adds a mark with sign 1 before it acknowledges them; who has recomputed the rows clears it: adds
-- the same key with sign -1. Queries read dirty hours from the events. A merge drops a mark together with its clearing, so the
-- table holds little more than what is open.
CREATE TABLE IF NOT EXISTS dirty_hours
(
    account_id LowCardinality(String) CODEC(ZSTD(1)),
    -- Of one insert of marks; never used again once it is cleared
    mark_id    UUID CODEC(ZSTD(1)),
    hours      Array(DateTime('UTC')) CODEC(ZSTD(1)),
    marked_at  DateTime('UTC') DEFAULT now() CODEC(ZSTD(1)),
    -- Seconds later it is time to recompute them; more than 0 for rows that the server's limits did not let be computed
    due_in     UInt32 CODEC(ZSTD(1)),
    sign       Int8
)
ENGINE = CollapsingMergeTree(sign)
ORDER BY (account_id, mark_id)
-- An event is acknowledged when its mark is durable.
SETTINGS fsync_after_insert = 1, fsync_part_directory = 1, index_granularity = 256
