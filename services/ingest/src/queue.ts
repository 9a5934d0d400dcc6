/** The worker's side of the queue: its connection, and BullMQ's own worker with the data of jobs as producers wrote it. */
import { createRedisClient, type RedisClient } from '@meterline/service/access';
import { isNotConnectionError, type Job, type JobJson, Worker } from 'bullmq';

const LONGEST_RECONNECT_MS = 5_000;
/** Redis refuses a script at its first write when it is full, unless the script says this in its first line. */
const RUNS_WHEN_FULL = '#!lua flags=allow-oom\n';

/**
 * For BullMQ: commands wait for a Redis that is away, however long, because BullMQ takes a job for failed that was done and could not be
 * acknowledged. BullMQ's scripts, which it defines with `defineCommand`, run while Redis is full: taking and acknowledging jobs is what
 * empties it.
 */
export function openQueueConnection(url: string): RedisClient {
  const redis = createRedisClient(url, {
    maxRetriesPerRequest: null,
    retryStrategy: (attempt) => Math.min(attempt * 500, LONGEST_RECONNECT_MS),
  });
  const define = redis.defineCommand.bind(redis);
  redis.defineCommand = (name, definition) => define(name, { ...definition, lua: RUNS_WHEN_FULL + definition.lua });
  return redis;
}

/** System errors, such as ECONNRESET, have a `syscall`. */
export function isConnectionError(error: Error): boolean {
  return !isNotConnectionError(error) || 'syscall' in error;
}

/** Acknowledged jobs that stay readable in Redis, if their data is not much larger than that of most jobs. */
const KEPT_COMPLETED_JOBS = 20;
const LARGEST_KEPT_LENGTH = 4 * 1024 * 1024;

/** Leaves the data of a job as the text that Redis holds: it is parsed once, where it is checked, and need not be valid JSON. */
export class RawJobWorker extends Worker<string, void> {
  protected override createJob(json: JobJson, jobId: string): Job<string, void> {
    // A schedule would send the same event for ever, which counts once; and no child of a flow makes an event invalid.
    const { data, repeatJobKey: _, deferredFailure: _failure, ...rest } = json;
    const job = super.createJob({ ...rest, data: '""' }, jobId);
    job.data = data;
    // A producer's options must not count here: keeping all completed jobs would fill Redis, and dropping failed ones would lose events.
    job.opts.removeOnComplete = { count: data.length <= LARGEST_KEPT_LENGTH ? KEPT_COMPLETED_JOBS : 0 };
    job.opts.removeOnFail = false;
    return job;
  }
}
