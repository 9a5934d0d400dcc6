-- What could not be accepted, kept whole with the reason, so that an operator can read, mend and replay it.
-- A job that is delivered again writes the same keys again: received_at is when the queue took the job, not when a
-- worker saw it. Producers choose times and ids of jobs, so the payload tells two rejections apart in the end.
CREATE TABLE IF NOT EXISTS rejected_events
(
    received_at DateTime64(3, 'UTC') CODEC(Delta, ZSTD(1)),
    job_id      String CODEC(ZSTD(1)),
    -- Index of the event in its job; 0 also for a job that was rejected whole
    position    UInt32 CODEC(ZSTD(1)),
    -- As the event claims; empty when that cannot be read
    account_id  String CODEC(ZSTD(1)),
    reason      LowCardinality(String),
    message     String CODEC(ZSTD(1)),
    -- As the producer sent it: the event, or the whole job. An event from a job of several is written anew from what
    -- JSON.parse made of it.
    payload     String CODEC(ZSTD(3))
)
ENGINE = ReplacingMergeTree
PARTITION BY toYYYYMM(received_at)
ORDER BY (received_at, job_id, position, sipHash64(payload))
SETTINGS fsync_after_insert = 1, fsync_part_directory = 1
