import { REJECTION_REASONS } from '@meterline/catalog';
import { instruments } from '@meterline/service/metrics';
import { GRAINS } from '@meterline/warehouse';
import type { Registry } from 'prom-client';

/** `returned`: the worker stopped before the job's rows were durable. `deferred`: put back for some seconds, so that other jobs go first. */
const JOB_RESULTS = ['acknowledged', 'returned', 'deferred', 'failed'] as const;
const INSERTED_TABLES = ['usage_events', 'rejected_events'] as const;
export type InsertedTable = (typeof INSERTED_TABLES)[number];

/** In seconds, from a small insert on a fast disk to the request timeout. */
const INSERT_BUCKETS = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60];
/** In seconds, from an hour with little usage to a step with a million events. */
const SEAL_BUCKETS = [0.01, 0.05, 0.1, 0.5, 1, 2.5, 5, 10, 30, 60, 300];

export type IngestMetrics = ReturnType<typeof createIngestMetrics>;

export function createIngestMetrics(registry: Registry) {
  const { counter, gauge, histogram } = instruments(registry);
  const metrics = {
    jobsTaken: counter('meterline_jobs_taken_total', 'Jobs taken from the queue; a redelivered job counts again.'),
    jobsFinished: counter(
      'meterline_jobs_finished_total',
      'Jobs that left this worker: acknowledged; returned to the queue at a shutdown; deferred for some seconds in favor of other jobs; failed because of a bug.',
      'result',
    ),
    eventsAccepted: counter(
      'meterline_events_accepted_total',
      'Events stored in usage_events; a resent event counts again.',
    ),
    eventsRejected: counter(
      'meterline_events_rejected_total',
      'Events stored in rejected_events, by reason; a rejected job counts once.',
      'reason',
    ),
    insertDuration: histogram(
      'meterline_insert_duration_seconds',
      'Duration of successful inserts, without failed attempts.',
      INSERT_BUCKETS,
      'table',
    ),
    insertedRows: counter('meterline_inserted_rows_total', 'Rows of successful inserts.', 'table'),
    insertRetries: counter('meterline_insert_retries_total', 'Inserts that failed and were retried.', 'table'),
    rowsRecomputed: counter(
      'meterline_rollup_rows_recomputed_total',
      'Rollup rows of sealed hours and days recomputed because an event arrived late, by grain.',
      'grain',
    ),
    hoursMarked: counter(
      'meterline_hours_marked_total',
      'Sealed hours marked as dirty because an event arrived late; each account counts separately.',
    ),
    markRetries: counter('meterline_mark_retries_total', 'Marks of dirty hours that failed and were retried.'),
    maintenanceFailures: counter(
      'meterline_maintenance_failures_total',
      'Steps of recomputing or sealing rollups that failed; hours are read from the events until a later one succeeds.',
    ),
    conflictingEvents: counter(
      'meterline_conflicting_events_total',
      'Different events with the same eventId and revision, found while computing rollups; only one of them counts.',
    ),
    rowsTooLarge: counter(
      'meterline_rollup_rows_too_large_total',
      'Rollup rows skipped because they need more than STATEMENT_MB or 15 minutes; retried after an hour.',
    ),
    dirtyHours: gauge(
      'meterline_dirty_hours',
      'Dirty hours not recomputed yet, when this process last checked; each mark counts.',
    ),
    oldestMark: gauge(
      'meterline_oldest_dirty_hour_seconds',
      'Age of the oldest mark of a dirty hour; 0 if there is none.',
    ),
    boundRetries: counter(
      'meterline_retention_bound_retries_total',
      'Reads of the retention bounds that failed and were retried.',
    ),
    closedBefore: gauge(
      'meterline_closed_before_seconds',
      'Unix time before which events are rejected as too_old; 0 if none are.',
    ),
    sealedUntil: gauge(
      'meterline_sealed_until_seconds',
      'Unix time up to which rollups may be read, by grain, when this process last sealed or checked.',
      'grain',
    ),
    sealDuration: histogram(
      'meterline_seal_duration_seconds',
      'Duration of one step of sealing, by grain.',
      SEAL_BUCKETS,
      'grain',
    ),
  };
  // Start at 0, so that the first occurrence of each label is visible as an increase.
  for (const result of JOB_RESULTS) metrics.jobsFinished.inc({ result }, 0);
  for (const reason of REJECTION_REASONS) metrics.eventsRejected.inc({ reason }, 0);
  for (const table of INSERTED_TABLES) {
    metrics.insertedRows.inc({ table }, 0);
    metrics.insertRetries.inc({ table }, 0);
  }
  for (const grain of GRAINS) metrics.rowsRecomputed.inc({ grain }, 0);
  return metrics;
}
