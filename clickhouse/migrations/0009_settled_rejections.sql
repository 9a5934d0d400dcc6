-- Rejected events that an operator has dealt with: sent again or discarded. Their rows are deleted from rejected_events, but a
-- deletion alone does not hold: a worker that died before it acknowledged the job, or was frozen and goes on, writes the
-- same row again, and a ReplacingMergeTree has no memory of what was deleted. What is named here stays settled, in
-- whatever order deletion and redelivery come. Readers of rejected_events leave these rows out.
CREATE TABLE IF NOT EXISTS settled_rejections
(
    received_at DateTime64(3, 'UTC') CODEC(Delta, ZSTD(1)),
    -- sipHash64(job_id, position, payload) of the row; with received_at it names one rejection
    fingerprint UInt64 CODEC(ZSTD(1)),
    -- replayed or discarded
    outcome     LowCardinality(String),
    settled_at  DateTime64(3, 'UTC') DEFAULT now64(3) CODEC(ZSTD(1))
)
ENGINE = ReplacingMergeTree
ORDER BY (received_at, fingerprint)
SETTINGS fsync_after_insert = 1, fsync_part_directory = 1
