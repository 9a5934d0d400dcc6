-- The truth, in another order: ClickHouse orders a UUID by its second half, which is random in one of version 7, so every part
-- of an hour overlapped every other, and FINAL had to merge all its rows. UUIDToNum has the order of the text: newer parts lie
-- behind older ones, and FINAL merges only what overlaps. All else is as 0001 to 0014 have made it.
-- An order cannot be altered, so this is a new table: schema/move-events.ts fills it from the old one and gives it the name
-- usage_events. A new database has it under that name from the beginning, and there 0001 to 0014 change nothing.
CREATE TABLE IF NOT EXISTS usage_events_next
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

    -- Which accounts have rows in an hour, and how many: see 0013
    PROJECTION by_hour
    (
        SELECT event_hour, account_id, count() GROUP BY event_hour, account_id
    )
)
ENGINE = ReplacingMergeTree(row_version)
PARTITION BY toYYYYMM(event_hour)
ORDER BY (account_id, event_hour, UUIDToNum(event_id))
-- Acknowledged means durable: an insert returns only after its part is on disk. The others: see 0010 and 0012.
SETTINGS fsync_after_insert = 1, fsync_part_directory = 1,
    enable_block_number_column = 1, deduplicate_merge_projection_mode = 'rebuild'
