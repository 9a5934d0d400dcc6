/** What tests put into the queue, and what they wait for and find in the database. */
import { setTimeout as sleep } from 'node:timers/promises';
import type { Warehouse } from '@meterline/warehouse';
import type { JobsOptions, Queue } from 'bullmq';
import type { Redis } from 'ioredis';
import { z } from 'zod';
import { usageEvents } from './events.js';
import { select, testRedisUrl, uniquePrefix } from './stack.js';
import { until } from './waiting.js';

/** Adds jobs of equal size; the events are numbered from `first`. */
export async function enqueue(queue: Queue, jobs: number, eventsPerJob: number, first = 0): Promise<void> {
  const batch = Array.from({ length: jobs }, (_, job) => ({
    name: 'usage',
    data: { events: usageEvents(first + job * eventsPerJob, eventsPerJob) },
  }));
  for (let start = 0; start < batch.length; start += 500) await queue.addBulk(batch.slice(start, start + 500));
}

/** Adds one job with this data. */
export async function enqueueData(queue: Queue, data: unknown, options?: JobsOptions): Promise<string> {
  const { id } = await queue.add('usage', data, options);
  return id ?? '';
}

/** Writes a job with these fields to Redis, as a producer without BullMQ's client could. */
export async function enqueueRaw(
  { queue, redis }: { readonly queue: Queue; readonly redis: Redis },
  fields: Record<string, string>,
): Promise<string> {
  await queue.pause();
  const id = await enqueueData(queue, {});
  await redis.hset(queue.toKey(id), fields);
  await queue.resume();
  return id;
}

/** Resolves when every job is acknowledged. @throws Error when a job failed */
export async function drained(queue: Queue): Promise<void> {
  await until('the queue is empty', async () => {
    const { failed } = await queue.getJobCounts('failed');
    if (failed) throw new Error(`${failed} jobs have failed`);
    return (await openJobs(queue)) === 0;
  });
}

/** The number of jobs that are not completed; a failed job is stuck until an operator handles it. */
export async function openJobs(queue: Queue): Promise<number> {
  const { completed: _, ...open } = await queue.getJobCounts();
  return Object.values(open).reduce((sum, jobs) => sum + jobs, 0);
}

/** Polls the condition. @returns whether it held before the deadline @throws AbortError */
export async function holdsWithin(
  deadlineMs: number,
  signal: AbortSignal | undefined,
  holds: () => boolean | Promise<boolean>,
): Promise<boolean> {
  const deadline = Date.now() + deadlineMs;
  while (!(await holds())) {
    if (Date.now() > deadline) return false;
    await pause(25, signal);
  }
  return true;
}

/** Ends at once when the signal is aborted. @throws AbortError */
export function pause(ms: number, signal?: AbortSignal): Promise<void> {
  return sleep(ms, undefined, { signal });
}

/** The number of events in usage_events and their usage, as readers see them; each event's usage is 1. */
export async function stored(warehouse: Warehouse, accountId = 'acme'): Promise<{ events: number; usage: number }> {
  const rows = await select<{ events: number; usage: number }>(
    warehouse,
    `SELECT toUInt32(count()) AS events, toFloat64(sum(usage)) AS usage
     FROM usage_events FINAL WHERE account_id = {accountId: String}`,
    { accountId },
  );
  return rows[0] ?? { events: 0, usage: 0 };
}

export interface RejectedRow {
  readonly job_id: string;
  readonly position: number;
  readonly account_id: string;
  readonly reason: string;
  readonly payload: string;
}

/** The job's rows in rejected_events, as an operator sees them. */
export function rejectedRows(warehouse: Warehouse, jobId: string): Promise<RejectedRow[]> {
  return select(
    warehouse,
    `SELECT job_id, position, account_id, reason, payload
     FROM rejected_events FINAL WHERE job_id = {jobId: String} ORDER BY position`,
    { jobId },
  );
}

/** A user of Redis who may touch none of our keys, and how often that was refused. */
export async function strangerTo(redis: Redis) {
  const user = uniquePrefix();
  await redis.acl('SETUSER', user, 'on', '>secret', '+@all', '~another-queue:*');
  const url = new URL(testRedisUrl());
  [url.username, url.password] = [user, 'secret'];
  return {
    url: url.href,
    refusals: async () => {
      const entries = z.array(z.array(z.unknown())).parse(await redis.acl('LOG', '100'));
      const own = entries.filter((entry) => entry[entry.indexOf('username') + 1] === user);
      return own.reduce((sum, entry) => sum + Number(entry[entry.indexOf('count') + 1]), 0);
    },
    remove: () => redis.acl('DELUSER', user),
  };
}
