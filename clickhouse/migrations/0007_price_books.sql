-- Every price book that a worker has priced with. row_version compares books by their version alone, so a version
-- must mean the same prices for ever; a worker whose book breaks that refuses to start.
CREATE TABLE IF NOT EXISTS price_books
(
    version       UInt16,
    checksum      FixedString(64),
    canonical     String CODEC(ZSTD(3)),
    registered_at DateTime64(3, 'UTC') DEFAULT now64(3)
)
ENGINE = MergeTree
ORDER BY (version, registered_at)
SETTINGS fsync_after_insert = 1, fsync_part_directory = 1
