/** What the ingest worker measures. */
import { REJECTION_REASONS } from '@meterline/catalog';
import { instruments } from '@meterline/service/metrics';
import { GRAINS } from '@meterline/warehouse';
import type { Registry } from 'prom-client';

/**
 * `returned`: back in the queue, because the worker had to stop before its rows were durable, or as the parent of a flow. `deferred`: back in the queue
 * for some seconds, because it would have held up others.
 */
const JOB_RESULTS = ['acknowledged', 'returned', 'deferred', 'failed'] as const;
const INSERTED_TABLES = ['usage_events', 'rejected_events'] as const;
export type InsertedTable = (typeof INSERTED_TABLES)[number];

/** Seconds, from a small insert on a fast disk to the request timeout. */
const INSERT_BUCKETS = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60];
/** Seconds, from an hour of little use to a catch-up step of a million events. */
const SEAL_BUCKETS = [0.01, 0.05, 0.1, 0.5, 1, 2.5, 5, 10, 30, 60, 300];

export type IngestMetrics = ReturnType<typeof createIngestMetrics>;

/** What the worker counts as it goes. */
export function createIngestMetrics(registry: Registry) {
  const { counter, gauge, histogram } = instruments(registry);
  const metrics = {
    jobsTaken: counter(
      'meterline_jobs_taken_total',
      'Jobs taken from the queue; a job that is taken again counts again.',
    ),
    jobsFinished: counter(
      'meterline_jobs_finished_total',
      'Jobs that left this worker: acknowledged; returned to the queue, at a stop or as the parent of a flow; deferred there for seconds, for others; failed, a defect.',
      'result',
    ),
    eventsAccepted: counter(
      'meterline_events_accepted_total',
      'Events made durable in usage_events; an event that is sent again counts again.',
    ),
    eventsRejected: counter(
      'meterline_events_rejected_total',
      'Events kept in rejected_events, by reason; a job that is rejected as a whole counts once.',
      'reason',
    ),
    insertDuration: histogram(
      'meterline_insert_duration_seconds',
      'How long an insert took that succeeded, without the attempts before it.',
      INSERT_BUCKETS,
      'table',
    ),
    insertedRows: counter('meterline_inserted_rows_total', 'Rows of the inserts that succeeded.', 'table'),
    insertRetries: counter('meterline_insert_retries_total', 'Inserts that failed and were tried again.', 'table'),
    rowsRecomputed: counter(
      'meterline_rollup_rows_recomputed_total',
      'Rollup rows of sealed hours and days recomputed because an event arrived late, by grain.',
      'grain',
    ),
    hoursMarked: counter(
      'meterline_hours_marked_total',
      'Sealed hours marked as dirty because an event arrived late, each of each account.',
    ),
    markRetries: counter('meterline_mark_retries_total', 'Marks of dirty hours that failed and were tried again.'),
    maintenanceFailures: counter(
      'meterline_maintenance_failures_total',
      'Steps of recomputing or sealing rollups that failed; hours are read from the events until a later one succeeds.',
    ),
    conflictingEvents: counter(
      'meterline_conflicting_events_total',
      'Events with the eventId and revision of another one that differs, found where hours are recomputed; one of them counts.',
    ),
    rowsTooLarge: counter(
      'meterline_rollup_rows_too_large_total',
      'Rollup rows that were left because they need more than STATEMENT_MB or 15 minutes; tried again after an hour.',
    ),
    dirtyHours: gauge(
      'meterline_dirty_hours',
      'Dirty hours that are not recomputed yet, when this process last looked; once for each mark.',
    ),
    oldestMark: gauge(
      'meterline_oldest_dirty_hour_seconds',
      'For how long the oldest dirty hour has been marked; 0 when there is none.',
    ),
    boundRetries: counter(
      'meterline_retention_bound_retries_total',
      'Failed attempts to read which months are being dropped; they are repeated.',
    ),
    closedBefore: gauge(
      'meterline_closed_before_seconds',
      'Unix time before which events are rejected as too_old; 0: none are.',
    ),
    sealedUntil: gauge(
      'meterline_sealed_until_seconds',
      'Unix time up to which rollups may be read, by grain, when this process last sealed or looked.',
      'grain',
    ),
    sealDuration: histogram(
      'meterline_seal_duration_seconds',
      'How long one step of sealing took, by grain.',
      SEAL_BUCKETS,
      'grain',
    ),
  };
  // From the start, so that the first one of each is seen as an increase.
  for (const result of JOB_RESULTS) metrics.jobsFinished.inc({ result }, 0);
  for (const reason of REJECTION_REASONS) metrics.eventsRejected.inc({ reason }, 0);
  for (const table of INSERTED_TABLES) {
    metrics.insertedRows.inc({ table }, 0);
    metrics.insertRetries.inc({ table }, 0);
  }
  for (const grain of GRAINS) metrics.rowsRecomputed.inc({ grain }, 0);
  return metrics;
}
