/** A queue and a database of their own, what to put in, and what came out. */
import { setTimeout as sleep } from 'node:timers/promises';
import type { UsageEventInput } from '@meterline/catalog';
import { QUEUE_NAME } from '@meterline/catalog';
import { createWarehouse, type Warehouse } from '@meterline/warehouse';
import { type JobsOptions, Queue } from 'bullmq';
import { Redis } from 'ioredis';
import type { ServiceEnvironment } from '../services.js';
import { createTestDatabase, select, testRedisUrl, uniquePrefix } from '../stack.js';

export interface Pipeline {
  readonly warehouse: Warehouse;
  readonly queue: Queue;
  readonly redis: Redis;
  /** The environment of a worker of this pipeline. */
  readonly env: ServiceEnvironment;
  close(): Promise<void>;
}

/** On the servers that all tests share, or on those named, which the test owns and may break. */
export async function openPipeline(own: { redisUrl?: string; clickhouseUrl?: string } = {}): Promise<Pipeline> {
  const redisUrl = own.redisUrl ?? testRedisUrl();
  const prefix = uniquePrefix();
  const database = own.clickhouseUrl === undefined ? await createTestDatabase() : unsharedDatabase(own.clickhouseUrl);
  const queue = new Queue(QUEUE_NAME, { connection: { url: redisUrl, maxRetriesPerRequest: null }, prefix });
  queue.on('error', () => undefined);
  const redis = new Redis(redisUrl, { lazyConnect: true });
  const env = {
    REDIS_URL: redisUrl,
    CLICKHOUSE_URL: database.options.url,
    CLICKHOUSE_DATABASE: database.options.database,
    QUEUE_PREFIX: prefix,
    // Tests that are about sealing turn it on, or do it themselves.
    SEAL_EVERY_MS: '0',
  };
  const close = async () => {
    if (own.redisUrl === undefined) await queue.obliterate({ force: true });
    await queue.close();
    redis.disconnect();
    await database.drop();
  };
  return { warehouse: database.warehouse, queue, redis, env, close };
}

/** The worker itself creates it, and it ends with its server. */
function unsharedDatabase(url: string) {
  const options = { url, user: 'default', password: '', database: 'meterline', application: 'meterline-test' };
  const warehouse = createWarehouse(options);
  return { options, warehouse, drop: () => warehouse.close() };
}

/** Event number n, always the same: a GB-second of a sandbox, and one second later than event n - 1. */
export function usageEvent(n: number, changes: Partial<UsageEventInput> = {}): UsageEventInput {
  return {
    eventId: `0190c5e4-7b1a-7def-8abc-${n.toString(16).padStart(12, '0')}`,
    accountId: 'acme',
    workspace: 'prod',
    resourceType: 'sandbox',
    resourceName: 'builder',
    billingDimension: 'sandbox_compute_runtime_gbs',
    usage: 1,
    timestamp: new Date(Date.UTC(2026, 0, 1) + n * 1_000).toISOString(),
    ...changes,
  };
}

export function usageEvents(first: number, count: number): UsageEventInput[] {
  return Array.from({ length: count }, (_, index) => usageEvent(first + index));
}

/** Jobs of so many events each, events numbered on from `first`. */
export async function enqueue(queue: Queue, jobs: number, eventsPerJob: number, first = 0): Promise<void> {
  const batch = Array.from({ length: jobs }, (_, job) => ({
    name: 'usage',
    data: { events: usageEvents(first + job * eventsPerJob, eventsPerJob) },
  }));
  for (let start = 0; start < batch.length; start += 500) await queue.addBulk(batch.slice(start, start + 500));
}

/** One job with this data. */
export async function enqueueData(queue: Queue, data: unknown, options?: JobsOptions): Promise<string> {
  const { id } = await queue.add('usage', data, options);
  return id ?? '';
}

/** A job with these fields in Redis, as a producer that does not use BullMQ's client could leave it. */
export async function enqueueRaw({ queue, redis }: Pipeline, fields: Record<string, string>): Promise<string> {
  await queue.pause();
  const id = await enqueueData(queue, {});
  await redis.hset(queue.toKey(id), fields);
  await queue.resume();
  return id;
}

/** Resolves when every job is acknowledged; a job that failed counts as none. */
export async function drained(queue: Queue, deadlineMs = 30_000): Promise<void> {
  await until('the queue is empty', deadlineMs, async () => {
    const { failed, completed, ...open } = await queue.getJobCounts();
    if (failed) throw new Error(`${failed} jobs have failed`);
    return Object.values(open).every((jobs) => jobs === 0);
  });
}

/** A busy machine may take so many times longer than an idle one before that counts as a failure. */
const PATIENCE = 5;

/** Polls a real condition. @param deadlineMs more than enough on an idle machine */
export async function until(what: string, deadlineMs: number, holds: () => Promise<boolean>): Promise<void> {
  const deadline = Date.now() + deadlineMs * PATIENCE;
  while (!(await holds())) {
    if (Date.now() > deadline) throw new Error(`not within ${deadlineMs * PATIENCE} ms: ${what}`);
    await sleep(25);
  }
}

/** What readers see of usage_events: how many events and how much usage, each event's usage being 1. */
export async function stored(warehouse: Warehouse, accountId = 'acme'): Promise<{ events: number; usage: number }> {
  const rows = await select<{ events: number; usage: number }>(
    warehouse,
    `SELECT toUInt32(count()) AS events, toFloat64(sum(usage)) AS usage
     FROM usage_events FINAL WHERE account_id = {accountId: String}`,
    { accountId },
  );
  return rows[0] ?? { events: 0, usage: 0 };
}

/**
 * In how many inserts usage_events was written, and how many rows, duplicates across inserts included. A part as it
 * was inserted has level 1, because ClickHouse replaces within an insert at once; merges give higher levels, and must be
 * stopped, because they remove the parts that they have merged.
 */
export async function written(warehouse: Warehouse): Promise<{ inserts: number; rows: number }> {
  const rows = await select<{ inserts: number; rows: number }>(
    warehouse,
    `SELECT toUInt32(count()) AS inserts, toUInt32(sum(rows)) AS rows
     FROM system.parts WHERE database = currentDatabase() AND table = 'usage_events' AND level = 1`,
  );
  return rows[0] ?? { inserts: 0, rows: 0 };
}

export interface RejectedRow {
  readonly job_id: string;
  readonly position: number;
  readonly account_id: string;
  readonly reason: string;
  readonly payload: string;
}

/** What an operator sees of the job in rejected_events. */
export function rejectedRows(warehouse: Warehouse, jobId: string): Promise<RejectedRow[]> {
  return select(
    warehouse,
    `SELECT job_id, position, account_id, reason, payload
     FROM rejected_events FINAL WHERE job_id = {jobId: String} ORDER BY position`,
    { jobId },
  );
}
