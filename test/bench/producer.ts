/**
 * A producer as a separate process: adds jobs of 500 events at a steady rate, until SIGTERM.
 * Arguments: Redis URL, queue prefix, events per second.
 */
import { setTimeout as delay } from 'node:timers/promises';
import { liveEvent, openQueue } from './usage-queue.js';

const EVENTS_PER_JOB = 500;
const TICK_MS = 50;

const [url = '', prefix = '', rate] = process.argv.slice(2);
const jobsPerSecond = Number(rate) / EVENTS_PER_JOB;
const queue = openQueue(url, prefix);
const stop = new AbortController();
for (const end of ['SIGTERM', 'disconnect'] as const) process.once(end, () => stop.abort());
process.channel?.unref();

const started = performance.now();
for (let sent = 0; !stop.signal.aborted; ) {
  const due = Math.floor(((performance.now() - started) / 1000) * jobsPerSecond);
  const jobs = Array.from({ length: due - sent }, () => ({
    name: 'usage',
    data: { events: Array.from({ length: EVENTS_PER_JOB }, () => liveEvent()) },
  }));
  if (jobs.length > 0) await queue.addBulk(jobs);
  sent = due;
  await delay(TICK_MS);
}
await queue.close();
