-- Which accounts have rows in an hour, and how many. The table is ordered by account, so without this the answer would
-- take a look at every row of the month. It is part of each part: written, durable and removed with it. Parts from before
-- get it when they are merged; until then they are read row by row.
ALTER TABLE usage_events ADD PROJECTION IF NOT EXISTS by_hour
(
    SELECT event_hour, account_id, count() GROUP BY event_hour, account_id
)
