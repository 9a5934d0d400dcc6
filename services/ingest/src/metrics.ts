/** What the ingest worker counts. Every label has a fixed set of values: nothing that a producer names becomes one. */
import { REJECTION_REASONS } from '@meterline/catalog';
import { GRAINS } from '@meterline/warehouse';
import { Counter, Gauge, Histogram, type Registry } from 'prom-client';

/** `returned`: back in the queue, because the worker was told to stop before its rows were durable. */
const JOB_RESULTS = ['acknowledged', 'returned', 'failed'] as const;
export const INSERTED_TABLES = ['usage_events', 'rejected_events'] as const;
export type InsertedTable = (typeof INSERTED_TABLES)[number];

/** From a small insert on a fast disk to the request timeout. */
const INSERT_BUCKETS = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60];

/** From an hour of little use to a catch-up step of a million events. */
const SEAL_BUCKETS = [0.01, 0.05, 0.1, 0.5, 1, 2.5, 5, 10, 30, 60, 300];

export type IngestMetrics = ReturnType<typeof createIngestMetrics>;

export function createIngestMetrics(registry: Registry) {
  const registers = [registry];
  const metrics = {
    jobsTaken: new Counter({
      name: 'meterline_jobs_taken_total',
      help: 'Jobs taken from the queue, one that is taken again each time.',
      registers,
    }),
    jobsFinished: new Counter({
      name: 'meterline_jobs_finished_total',
      help: 'Jobs that left this worker, by result: acknowledged, returned (to the queue, at a stop) or failed.',
      labelNames: ['result'],
      registers,
    }),
    eventsAccepted: new Counter({
      name: 'meterline_events_accepted_total',
      help: 'Events made durable in usage_events, one that is sent again each time.',
      registers,
    }),
    eventsRejected: new Counter({
      name: 'meterline_events_rejected_total',
      help: 'Events kept in rejected_events, by reason; a job that is refused whole is one.',
      labelNames: ['reason'],
      registers,
    }),
    insertDuration: new Histogram({
      name: 'meterline_insert_duration_seconds',
      help: 'How long an insert took that succeeded, without the attempts before it.',
      labelNames: ['table'],
      buckets: INSERT_BUCKETS,
      registers,
    }),
    insertedRows: new Counter({
      name: 'meterline_inserted_rows_total',
      help: 'Rows of the inserts that succeeded.',
      labelNames: ['table'],
      registers,
    }),
    insertRetries: new Counter({
      name: 'meterline_insert_retries_total',
      help: 'Inserts that failed and were tried again.',
      labelNames: ['table'],
      registers,
    }),
    cellsRepaired: new Counter({
      name: 'meterline_cells_repaired_total',
      help: 'Cells of sealed hours and days recomputed because an event arrived late, by grain.',
      labelNames: ['grain'],
      registers,
    }),
    cellRepairRetries: new Counter({
      name: 'meterline_cell_repair_retries_total',
      help: 'Recomputations of cells that failed and were tried again.',
      registers,
    }),
    sealedUntil: new Gauge({
      name: 'meterline_sealed_until_seconds',
      help: 'Unix time up to which cells may be read, by grain, when this process last sealed or looked.',
      labelNames: ['grain'],
      registers,
    }),
    sealDuration: new Histogram({
      name: 'meterline_seal_duration_seconds',
      help: 'How long one step of sealing took, by grain.',
      labelNames: ['grain'],
      buckets: SEAL_BUCKETS,
      registers,
    }),
  };
  // From the start, so that the first one of each is seen as an increase.
  for (const result of JOB_RESULTS) metrics.jobsFinished.inc({ result }, 0);
  for (const reason of REJECTION_REASONS) metrics.eventsRejected.inc({ reason }, 0);
  for (const table of INSERTED_TABLES) {
    metrics.insertedRows.inc({ table }, 0);
    metrics.insertRetries.inc({ table }, 0);
  }
  for (const grain of GRAINS) metrics.cellsRepaired.inc({ grain }, 0);
  return metrics;
}
