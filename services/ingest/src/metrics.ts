/** What the ingest worker measures. Every label has a fixed set of values: nothing that a producer names becomes one. */
import { type EpochMs, REJECTION_REASONS } from '@meterline/catalog';
import { type QueueDepth, sumOfDepths, waitingSeconds } from '@meterline/service/queue';
import { GRAINS } from '@meterline/warehouse';
import { Counter, Gauge, Histogram, type Registry } from 'prom-client';

/**
 * `returned`: back in the queue, because the worker had to stop before its rows were durable. `deferred`: back in the queue
 * for some seconds, because it would have held up others.
 */
const JOB_RESULTS = ['acknowledged', 'returned', 'deferred', 'failed'] as const;
const INSERTED_TABLES = ['usage_events', 'rejected_events', 'rejected_payloads'] as const;
export type InsertedTable = (typeof INSERTED_TABLES)[number];

/** Seconds, from a small insert on a fast disk to the request timeout. */
const INSERT_BUCKETS = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60];
/** Seconds, from an hour of little use to a catch-up step of a million events. */
const SEAL_BUCKETS = [0.01, 0.05, 0.1, 0.5, 1, 2.5, 5, 10, 30, 60, 300];

export type IngestMetrics = ReturnType<typeof createIngestMetrics>;

/** What the worker counts as it goes. */
export function createIngestMetrics(registry: Registry) {
  const registers = [registry];
  const counter = <Label extends string = never>(name: string, help: string, ...labelNames: Label[]) =>
    new Counter({ name, help, labelNames, registers });
  const histogram = <Label extends string>(name: string, help: string, buckets: number[], ...labelNames: Label[]) =>
    new Histogram({ name, help, buckets, labelNames, registers });
  const metrics = {
    jobsTaken: counter(
      'meterline_jobs_taken_total',
      'Jobs taken from the queue; a job that is taken again counts again.',
    ),
    jobsFinished: counter(
      'meterline_jobs_finished_total',
      'Jobs that left this worker, by result: acknowledged, returned (to the queue, at a stop), deferred or failed.',
      'result',
    ),
    jobsUnreadable: counter(
      'meterline_jobs_unreadable_total',
      'Jobs taken with fields that BullMQ cannot read; their events were taken nevertheless.',
    ),
    eventsAccepted: counter(
      'meterline_events_accepted_total',
      'Events made durable in usage_events; an event that is sent again counts again.',
    ),
    eventsRejected: counter(
      'meterline_events_rejected_total',
      'Events kept in rejected_events, by reason; a job that is refused as a whole counts once.',
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
    cellsRepaired: counter(
      'meterline_cells_repaired_total',
      'Cells of sealed hours and days recomputed because an event arrived late, by grain.',
      'grain',
    ),
    hoursMarked: counter(
      'meterline_hours_marked_total',
      'Sealed hours marked as stale because an event arrived late, each of each account.',
    ),
    markRetries: counter('meterline_mark_retries_total', 'Marks of stale hours that failed and were tried again.'),
    repairFailures: counter(
      'meterline_repair_failures_total',
      'Steps of repairing cells that failed; their hours are read from the events until a later one succeeds.',
    ),
    cellsTooLarge: counter(
      'meterline_cells_too_large_total',
      'Cells that sealing or repairing left because they need more than INGEST_STATEMENT_MB or 15 minutes.',
    ),
    repairDuration: new Histogram({
      name: 'meterline_repair_duration_seconds',
      help: 'How long one step of repairing cells took.',
      buckets: SEAL_BUCKETS,
      registers,
    }),
    staleHours: new Gauge({
      name: 'meterline_stale_hours',
      help: 'Hours marked as stale and not repaired yet, by any process, when this one last looked; once for each mark.',
      labelNames: ['shard'],
      registers,
    }),
    oldestMark: new Gauge({
      name: 'meterline_oldest_stale_hour_seconds',
      help: 'For how long the oldest of them had been marked; 0 when there were none.',
      labelNames: ['shard'],
      registers,
    }),
    boundRetries: counter(
      'meterline_retention_bound_retries_total',
      'Readings of the bound of months that are being dropped that failed and were tried again.',
    ),
    closedBefore: new Gauge({
      name: 'meterline_closed_before_seconds',
      help: 'Unix time before which events are refused as too old; 0: none are.',
      registers,
    }),
    sealedUntil: new Gauge({
      name: 'meterline_sealed_until_seconds',
      help: 'Unix time up to which cells may be read, by grain, and by shard if there are several, when this process last sealed or looked.',
      labelNames: ['grain', 'shard'],
      registers,
    }),
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
  for (const grain of GRAINS) metrics.cellsRepaired.inc({ grain }, 0);
  return metrics;
}

/** Jobs may wait this long without any progress; an insert and its retries take less while ClickHouse is there. */
const STALE_MS = 60_000;

export interface Consumption {
  /** Undefined when Redis did not answer: then jobs may be waiting. */
  readonly waitingJobs: number | undefined;
  readonly lastProgressAt: EpochMs;
  /** ClickHouse or Redis is away: the worker waits for it on purpose, and a restart would not help. */
  readonly outage: boolean;
}

/** Not whether the worker runs, but whether it takes the jobs that wait. */
export function isConsuming({ waitingJobs, lastProgressAt, outage }: Consumption, now: EpochMs): boolean {
  return waitingJobs === 0 || outage || now - lastProgressAt < STALE_MS;
}

/** The value of the label, and what it counts. */
const QUEUE_STATES = {
  waiting: 'waiting',
  active: 'active',
  delayed: 'delayed',
  failed: 'failed',
  'waiting-children': 'waitingChildren',
} as const satisfies Record<string, keyof QueueDepth>;

export interface WorkerState {
  /** By number; without those whose server does not answer. A scrape then lacks the numbers of the whole. */
  readonly readQueues: () => Promise<ReadonlyMap<number, QueueDepth>>;
  /** Rejects when Redis does not answer. */
  readonly isRedisFull: () => Promise<boolean>;
  /** Of the worker of each queue. */
  readonly consumption: (depths: ReadonlyMap<number, QueueDepth>) => readonly (Consumption & { shard: number })[];
  readonly waitingRows: () => number;
  readonly clock: () => EpochMs;
}

/** Gauges that are read at each scrape: the queue, the worker, and the rows that wait between the two. */
export function registerWorkerGauges(registry: Registry, state: WorkerState): void {
  /** Of all queues together; undefined while one of them does not answer. */
  const readWhole = async () => {
    const depths = await state.readQueues();
    return depths.size < state.consumption(depths).length ? undefined : sumOfDepths([...depths.values()]);
  };
  const gauge = <Label extends string = never>(
    name: string,
    help: string,
    collect: (gauge: Gauge<Label>) => void | Promise<void>,
    ...labelNames: Label[]
  ) => {
    const registered: Gauge<Label> = new Gauge({
      name,
      help,
      labelNames,
      registers: [registry],
      collect: () => collect(registered),
    });
  };

  const jobsHelp = 'Jobs in all queues by state; absent while Redis does not answer.';
  const setJobs = async (jobs: Gauge<'state'>) => {
    const depth = await readWhole();
    jobs.reset();
    if (depth) for (const [state, field] of Object.entries(QUEUE_STATES)) jobs.set({ state }, depth[field]);
  };
  gauge('meterline_queue_jobs', jobsHelp, setJobs, 'state');

  const waitingHelp = 'Jobs that wait in each queue, by its number; absent while its Redis does not answer.';
  const setWaiting = async (waiting: Gauge<'shard'>) => {
    waiting.reset();
    for (const [shard, depth] of await state.readQueues()) waiting.set({ shard }, depth.waiting);
  };
  gauge('meterline_queue_waiting_jobs', waitingHelp, setWaiting, 'shard');

  const ageHelp = 'How long the next job has waited, 0 when none waits; absent while Redis does not answer.';
  gauge('meterline_queue_oldest_waiting_age_seconds', ageHelp, async (age) => {
    const depth = await readWhole();
    age.remove();
    if (depth) age.set(waitingSeconds(depth, state.clock()));
  });

  const fullHelp = 'Whether Redis is full (1): then producers cannot add jobs; absent while Redis does not answer.';
  gauge('meterline_redis_full', fullHelp, async (full) => {
    const isFull = await state.isRedisFull().catch(() => undefined);
    full.remove();
    if (isFull !== undefined) full.set(isFull ? 1 : 0);
  });

  const consumingHelp =
    'Whether the worker takes jobs of every queue (1), or jobs wait in one and it has not taken any for a minute (0).';
  gauge('meterline_consuming', consumingHelp, async (consuming) => {
    const all = state.consumption(await state.readQueues());
    consuming.set(all.every((queue) => isConsuming(queue, state.clock())) ? 1 : 0);
  });

  const progressHelp = 'When the worker last took a job or made one durable, in Unix time; at first, when it started.';
  gauge('meterline_last_progress_timestamp_seconds', progressHelp, (progress) => {
    const last = state.consumption(new Map()).map(({ lastProgressAt }) => lastProgressAt);
    progress.set(Math.max(...last) / 1000);
  });

  gauge('meterline_batcher_waiting_rows', 'Rows that are collected and not in an insert yet.', (rows) => {
    rows.set(state.waitingRows());
  });
}
