/**
 * What benches measure against, or beside, as a process of its own, until SIGTERM. Arguments: Redis URL, queue prefix, part, number.
 *
 * - `idle`, concurrency: a BullMQ worker that does nothing, to measure the queue alone
 * - `express`, port: the plainest endpoint for events, Express and a job for each request; no key, no limit, no check
 * - `producer`, events a second: adds jobs of events to the queue at a steady rate
 */
import { setTimeout as delay } from 'node:timers/promises';
import { QUEUE_NAME } from '@meterline/catalog';
import { Queue, Worker } from 'bullmq';
import express from 'express';
import { liveEvents } from './traffic.js';

const TICK_MS = 50;

const [url = '', prefix = '', part = '', number = ''] = process.argv.slice(2);
const options = { connection: { url, maxRetriesPerRequest: null }, prefix };
const stop = new AbortController();
// `disconnect`: the process that started this one is gone.
for (const end of ['SIGTERM', 'disconnect'] as const) process.once(end, () => stop.abort());
process.channel?.unref();

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
