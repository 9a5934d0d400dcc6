-- The truth: one row per accepted payload. ReplacingMergeTree keeps, of all rows of one event, the one with the
-- highest row_version; readers use FINAL. Inserting a row twice is therefore harmless.
CREATE TABLE IF NOT EXISTS usage_events
(
    -- Identity: (account_id, event_hour, event_id)
    account_id        LowCardinality(String) CODEC(ZSTD(1)),
    event_id          UUID CODEC(ZSTD(1)),
    timestamp         DateTime64(3, 'UTC') CODEC(Delta, ZSTD(1)),
    event_hour        DateTime('UTC') MATERIALIZED toStartOfHour(timestamp) CODEC(Delta, ZSTD(1)),

    -- What producers own
    workspace         LowCardinality(String) CODEC(ZSTD(1)),
    resource_type     LowCardinality(String) CODEC(ZSTD(1)),
    resource_name     LowCardinality(String) CODEC(ZSTD(1)),
    resource_uuid     LowCardinality(String) CODEC(ZSTD(1)),
    billing_dimension LowCardinality(String) CODEC(ZSTD(1)),
    usage             Decimal(38, 9) CODEC(ZSTD(1)),
    revision          UInt16 CODEC(ZSTD(1)),
    voided            Bool CODEC(ZSTD(1)),

    -- What pricing owns: the cost under version price_book of the price book. Re-pricing raises price_revision.
    cost              Decimal(38, 12) CODEC(ZSTD(1)),
    price_revision    UInt16 CODEC(ZSTD(1)),
    price_book        UInt16 CODEC(ZSTD(1)),

    -- Orders all rows of one event so that any two have one winner, in whatever order they arrive:
    -- revision, then price revision, then the older price book, then a hash of the content. 96 of 128 bits are
    -- used, so that 2^32 of them can be summed. Computed here alone, so that no writer can get it wrong.
    row_version       UInt128 MATERIALIZED
          bitShiftLeft(toUInt128(revision), 80)
        + bitShiftLeft(toUInt128(price_revision), 64)
        + bitShiftLeft(toUInt128(65535 - price_book), 48)
        + bitShiftRight(sipHash64(timestamp, workspace, resource_type, resource_name, resource_uuid,
                                  billing_dimension, usage, voided), 16)
        CODEC(ZSTD(1)),

    -- Which accounts have rows in an hour, and how many. The table is ordered by account, so without this the answer would
    -- take a look at every row of the month.
    PROJECTION by_hour
    (
        SELECT event_hour, account_id, count() GROUP BY event_hour, account_id
    )
)
ENGINE = ReplacingMergeTree(row_version)
PARTITION BY toYYYYMM(event_hour)
-- ClickHouse orders a UUID by its second half, which is random in one of version 7. UUIDToNum has the order of the text: newer
-- parts lie behind older ones, and FINAL merges only what overlaps.
ORDER BY (account_id, event_hour, UUIDToNum(event_id))
-- Acknowledged means durable: an insert returns only after its part is on disk. The number of the insert that a row came with
-- is kept through merges: a later page leaves out what was inserted after its first page. A merge drops rows that were
-- replaced, so what the projection counted is counted anew; without that, a table of this engine may have none.
SETTINGS fsync_after_insert = 1, fsync_part_directory = 1,
    enable_block_number_column = 1, deduplicate_merge_projection_mode = 'rebuild'
