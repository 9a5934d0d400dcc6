-- Keeps, through merges, the number of the insert that a row came with. A later page of an answer leaves out what was
-- inserted after its first page. Rows of parts that were merged before this have the number of their part's first insert.
ALTER TABLE usage_events MODIFY SETTING enable_block_number_column = 1
