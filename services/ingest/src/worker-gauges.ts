/** What is read when Prometheus asks: the queue, the worker, and what waits between the two. */
import type { EpochMs } from '@meterline/catalog';
import { type QueueDepth, waitingSeconds } from '@meterline/service/queue';
import { Gauge, type Registry } from 'prom-client';
import { type Consumption, isConsuming } from './consumption.js';

const STATES = ['waiting', 'active', 'delayed', 'failed'] as const satisfies (keyof QueueDepth)[];

export interface WorkerState {
  /** Rejects when Redis does not answer; a scrape then lacks the queue's numbers and is otherwise complete. */
  readonly readQueue: () => Promise<QueueDepth>;
  /** Of everything but the queue. */
  readonly consumption: () => Omit<Consumption, 'waitingJobs'>;
  readonly waitingRows: () => number;
  readonly clock: () => EpochMs;
}

export function registerWorkerGauges(registry: Registry, state: WorkerState): void {
  const registers = [registry];
  const queue = () => state.readQueue().catch(() => undefined);

  const jobs = new Gauge({
    name: 'meterline_queue_jobs',
    help: 'Jobs in the queue by state; absent while Redis does not answer.',
    labelNames: ['state'],
    registers,
    collect: async () => {
      const depth = await queue();
      jobs.reset();
      if (depth) for (const name of STATES) jobs.set({ state: name }, depth[name]);
    },
  });
  const oldest = new Gauge({
    name: 'meterline_queue_oldest_waiting_age_seconds',
    help: 'How long the job has waited that has waited longest, 0 when none waits; absent while Redis does not answer.',
    registers,
    collect: async () => {
      const depth = await queue();
      oldest.remove();
      if (depth) oldest.set(waitingSeconds(depth, state.clock()));
    },
  });
  const consuming = new Gauge({
    name: 'meterline_consuming',
    help: 'Whether the worker takes jobs (1), or jobs wait and it has not taken any for a minute (0).',
    registers,
    collect: async () => {
      const waitingJobs = (await queue())?.waiting;
      consuming.set(isConsuming({ waitingJobs, ...state.consumption() }, state.clock()) ? 1 : 0);
    },
  });
  const lastProgress = new Gauge({
    name: 'meterline_last_progress_timestamp_seconds',
    help: 'When the worker last took a job or made one durable, in Unix time; at first, when it started.',
    registers,
    collect: () => {
      lastProgress.set(state.consumption().lastProgressAt / 1000);
    },
  });
  const rows = new Gauge({
    name: 'meterline_batcher_waiting_rows',
    help: 'Rows that are collected and not in an insert yet.',
    registers,
    collect: () => {
      rows.set(state.waitingRows());
    },
  });
}
