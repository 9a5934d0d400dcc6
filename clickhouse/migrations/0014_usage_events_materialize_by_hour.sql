-- Parts from before 0013 get the projection, too. ClickHouse never merges a part that has it with one that has not, so without
-- this a month that was begun before 0013 would keep its old parts beside the new ones for ever. It runs in the background,
-- reads two columns, and rewrites none.
ALTER TABLE usage_events MATERIALIZE PROJECTION IF EXISTS by_hour
