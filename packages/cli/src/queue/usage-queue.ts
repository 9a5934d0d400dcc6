import { QUEUE_NAME } from '@meterline/catalog';
import { Queue, type Telemetry } from 'bullmq';
import type { Redis } from 'ioredis';
import { type QueueStatus, readQueueStatus } from './queue-status.js';

/** BullMQ's states as this command sees them. */
export type JobProgress = 'pending' | 'taken_in' | 'failed';

/** The queue that the ingest workers consume, seen from outside. */
export class UsageQueue {
  readonly #queue: Queue;
  readonly #redis: Redis;

  /**
   * @param redis stays the caller's to close, and to listen to for connection errors
   * @param telemetry puts a trace into each job, which the worker goes on with
   */
  constructor(redis: Redis, prefix: string, telemetry?: Telemetry) {
    this.#redis = redis;
    this.#queue = new Queue(QUEUE_NAME, { connection: redis, prefix, ...(telemetry && { telemetry }) });
    // The same errors reject the command that was under way.
    this.#queue.on('error', () => undefined);
  }

  /**
   * Puts the events into the queue as one job, as they are. One job, one command: when it rejects, every job before
   * it is in the queue; this one may be. Sending events again is harmless, because their ids make them the same events.
   * @param events 1 to 5,000
   * @returns the job's id
   */
  async send(events: readonly unknown[]): Promise<string> {
    return this.sendJob({ events });
  }

  /** Puts this data into the queue as one job, whatever it is. @returns the job's id */
  async sendJob(data: unknown): Promise<string> {
    const job = await this.#queue.add('usage', data);
    return job.id ?? '';
  }

  /** A job that is gone counts as taken in: workers keep only so many of those that are done. */
  async progressOf(jobId: string): Promise<JobProgress> {
    const state = await this.#queue.getJobState(jobId);
    if (state === 'failed') return 'failed';
    return state === 'completed' || state === 'unknown' ? 'taken_in' : 'pending';
  }

  status(now: Date): Promise<QueueStatus> {
    return readQueueStatus(this.#queue, this.#redis, now);
  }

  async close(): Promise<void> {
    await this.#queue.close();
  }
}
