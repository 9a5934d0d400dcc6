/**
 * What benches measure against, or beside, as a process of its own, until SIGTERM. Arguments: Redis URL, queue prefix, part, number.
 *
 * - `idle`, concurrency: a BullMQ worker that does nothing, to measure the queue alone
 * - `express`, port: the plainest endpoint for events, Express and a job for each request; no key, no limit, no check
 * - `producer`, events a second: adds jobs of events to the queue at a steady rate
 * - `plain`, a ClickHouse as JSON: the worker that a team would write instead, with zod, JSONEachRow in batches of 50,000 rows or 100 ms, and
 *   money as doubles; it stores an event twice after a crash
 */
import { setTimeout as delay } from 'node:timers/promises';
import { createClient } from '@clickhouse/client';
import { BUILT_IN_DIMENSION_NAMES, BUILT_IN_RESOURCE_TYPES, MAX_NAME_LENGTH, QUEUE_NAME } from '@meterline/catalog';
import { Queue, Worker } from 'bullmq';
import express from 'express';
import { z } from 'zod';
import { liveEvents } from './traffic.js';

const TICK_MS = 50;

const [url = '', prefix = '', part = '', number = ''] = process.argv.slice(2);
const options = { connection: { url, maxRetriesPerRequest: null }, prefix };
const stop = new AbortController();
// `disconnect`: the process that started this one is gone.
for (const end of ['SIGTERM', 'disconnect'] as const) process.once(end, () => stop.abort());
process.channel?.unref();

const name = z.string().min(1).max(MAX_NAME_LENGTH);
const plainJob = z.object({
  events: z.array(
    z.strictObject({
      ...{ eventId: z.uuid(), accountId: name, workspace: name, resourceName: name, resourceUuid: name.optional() },
      resourceType: z.enum(BUILT_IN_RESOURCE_TYPES),
      billingDimension: z.enum(BUILT_IN_DIMENSION_NAMES),
      usage: z.union([z.number(), z.string()]),
      timestamp: z.iso.datetime(),
      revision: z.int().optional(),
      void: z.boolean().optional(),
    }),
  ),
});
const PLAIN = { rows: 50_000, waitMs: 100, concurrency: 200, price: 0.0000115 };

async function plainWorker(): Promise<void> {
  const client = createClient({ ...JSON.parse(number), clickhouse_settings: { async_insert: 0 } });
  let rows: object[] = [];
  let waiting: (() => void)[] = [];
  let timer: NodeJS.Timeout | undefined;
  const flush = async () => {
    clearTimeout(timer);
    timer = undefined;
    const [values, stored] = [rows, waiting];
    [rows, waiting] = [[], []];
    await client.insert({ table: 'plain_events', values, format: 'JSONEachRow' });
    for (const done of stored) done();
  };
  const worker = new Worker(
    QUEUE_NAME,
    async ({ data }) => {
      for (const { timestamp, usage, ...event } of plainJob.parse(data).events) {
        const time = timestamp.replace('T', ' ').replace('Z', '');
        rows.push({ ...event, timestamp: time, usage: String(usage), cost: (Number(usage) * PLAIN.price).toFixed(12) });
      }
      const stored = new Promise<void>((resolve) => waiting.push(resolve));
      if (rows.length >= PLAIN.rows) void flush();
      else timer ??= setTimeout(flush, PLAIN.waitMs);
      await stored;
    },
    { ...options, concurrency: PLAIN.concurrency, removeOnComplete: { count: 20 } },
  );
  stop.signal.addEventListener('abort', async () => {
    await worker.close();
    await client.close();
  });
}

const PARTS: Readonly<Record<string, () => Promise<unknown> | unknown>> = {
  idle: () => {
    const worker = new Worker(QUEUE_NAME, async () => {}, {
      ...options,
      concurrency: Number(number),
      removeOnComplete: { count: 20 },
    });
    stop.signal.addEventListener('abort', () => void worker.close());
  },
  express: () => {
    const queue = new Queue(QUEUE_NAME, options);
    const app = express();
    app.use(express.json());
    app.post('/v0/events', async (request, response) => {
      await queue.add('usage', { events: request.body });
      response.status(202).json({ accepted: 1 });
    });
    const server = app.listen(Number(number), '127.0.0.1');
    stop.signal.addEventListener('abort', () => {
      server.close();
      server.closeAllConnections();
      queue.disconnect();
    });
  },
  plain: plainWorker,
  producer: async () => {
    const queue = new Queue(QUEUE_NAME, options);
    const started = performance.now();
    for (let added = 0; !stop.signal.aborted; await delay(TICK_MS)) {
      const due = Math.floor(((performance.now() - started) / 1000) * Number(number));
      if (due > added) await queue.add('usage', { events: liveEvents(due - added) });
      added = due;
    }
    await queue.close();
  },
};
await PARTS[part]?.();
