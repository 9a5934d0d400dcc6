/**
 * A producer as a separate process: adds jobs of events to the queue at a steady rate, until SIGTERM.
 * Arguments: Redis URL, queue prefix, events per second.
 */
import { setTimeout as delay } from 'node:timers/promises';
import { liveEvent, openQueue } from './usage-queue.js';

const TICK_MS = 50;

const [url = '', prefix = '', rate] = process.argv.slice(2);
const queue = openQueue(url, prefix);
const stop = new AbortController();
for (const end of ['SIGTERM', 'disconnect'] as const) process.once(end, () => stop.abort());
process.channel?.unref();

const started = performance.now();
for (let added = 0; !stop.signal.aborted; ) {
  const due = Math.floor(((performance.now() - started) / 1000) * Number(rate));
  if (due > added) await queue.add('usage', { events: Array.from({ length: due - added }, () => liveEvent()) });
  added = due;
  await delay(TICK_MS);
}
await queue.close();
