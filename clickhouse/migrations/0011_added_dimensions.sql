-- The billing dimensions that catalog files have added. Every process with ClickHouse registers its own at start, and must know all of
-- these, so that no process rejects or misreads the events of another. If a dimension has two definitions, the older row counts.
CREATE TABLE IF NOT EXISTS added_dimensions
(
    billing_dimension String,
    resource_type     String,
    unit              String,
    registered_at     DateTime64(3, 'UTC') DEFAULT now64(3)
)
ENGINE = MergeTree
ORDER BY billing_dimension
SETTINGS fsync_after_insert = 1, fsync_part_directory = 1
