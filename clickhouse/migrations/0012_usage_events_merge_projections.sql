-- A merge drops rows that were replaced, so what a projection counted is counted anew. Without this, a table of this
-- engine may have no projection.
ALTER TABLE usage_events MODIFY SETTING deduplicate_merge_projection_mode = 'rebuild'
