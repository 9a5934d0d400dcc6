/** Opens what takes the jobs of a queue: many at a time, or one by one. */
import { QUEUE_NAME } from '@meterline/catalog';
import type { Processor, Telemetry, WorkerOptions } from 'bullmq';
import type { Logger } from 'pino';
import { ManyJobsWorker, type ShortWay } from './many-jobs-worker.js';
import type { QueueConnection } from './queue-connection.js';
import { type JobData, RawDataWorker } from './raw-data-worker.js';

/** A worker that dies leaves its jobs to the others after this long. A lock lost by mistake costs a second insert. */
const LOCK_MS = 15_000;
const STALLED_CHECK_MS = 5_000;

export interface QueueWorkerOptions {
  readonly connection: QueueConnection;
  readonly prefix: string;
  readonly concurrency: number;
  readonly takesMany: boolean;
  readonly onUnknownScripts: () => void;
  readonly telemetry: Telemetry | undefined;
  readonly log: Logger;
  readonly process: Processor<JobData, void>;
  readonly shortWay: ShortWay;
}

/** It takes no jobs before it is run. */
export function openQueueWorker(options: QueueWorkerOptions): RawDataWorker {
  const { connection, prefix, concurrency, takesMany, telemetry, log, process, shortWay } = options;
  const settings: WorkerOptions = {
    connection: connection.redis,
    prefix,
    concurrency,
    autorun: false,
    lockDuration: LOCK_MS,
    stalledInterval: STALLED_CHECK_MS,
    // A job is never at fault for the death of a worker.
    maxStalledCount: Number.MAX_SAFE_INTEGER,
    runRetryDelay: 1_000,
    ...(telemetry && { telemetry }),
  };
  if (!takesMany) return new RawDataWorker(QUEUE_NAME, process, settings);
  const onUnknownScripts = () => {
    log.warn(
      { event: 'queue_library_unknown' },
      'jobs are taken one by one: many at a time was not tried with this release of BullMQ',
    );
    options.onUnknownScripts();
  };
  return new ManyJobsWorker(QUEUE_NAME, process, settings, { connection, shortWay, onUnknownScripts });
}
