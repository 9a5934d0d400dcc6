-- How far back events are kept: each row moves one of three bounds, and together they tell when an operator did what.
-- closed: events before it are rejected as too_old. The row that was added last counts, because an operator may open months
-- again. dropping: someone has begun to make the rollup rows of the months before it final. dropped: these rows are final, and
-- the events may be gone. These two only rise: what counts is the maximum.
CREATE TABLE IF NOT EXISTS retention_bounds
(
    bound  Enum8('closed' = 1, 'dropping' = 2, 'dropped' = 3),
    -- The start of a month
    before DateTime('UTC'),
    set_at DateTime64(6, 'UTC') DEFAULT now64(6)
)
ENGINE = MergeTree
ORDER BY (bound, set_at)
SETTINGS fsync_after_insert = 1, fsync_part_directory = 1
