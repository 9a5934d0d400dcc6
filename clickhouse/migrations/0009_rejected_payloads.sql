-- All data of jobs that were too large to be read, in parts, byte by byte as the producer sent it. The refusal itself, with the
-- beginning of the data and its hash, is in rejected_events. A job that is delivered again writes the same keys again.
CREATE TABLE IF NOT EXISTS rejected_payloads
(
    received_at DateTime64(3, 'UTC') CODEC(Delta, ZSTD(1)),
    job_id      String CODEC(ZSTD(1)),
    -- Of all parts together, in hexadecimal. Producers choose times and ids of jobs, so the hash tells two jobs apart.
    sha256      String CODEC(ZSTD(1)),
    -- From 0 on
    part        UInt32 CODEC(ZSTD(1)),
    content     String CODEC(ZSTD(3))
)
ENGINE = ReplacingMergeTree
PARTITION BY toYYYYMM(received_at)
ORDER BY (received_at, job_id, sha256, part)
SETTINGS fsync_after_insert = 1, fsync_part_directory = 1
