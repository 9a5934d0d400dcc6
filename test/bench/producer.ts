/**
 * A producer as a separate process: records events at a steady rate, until SIGTERM.
 * Arguments: Redis URL, queue prefix, events per second.
 */
import { setTimeout as delay } from 'node:timers/promises';
import { openEmitter } from '@meterline/emitter';
import { liveEvent } from './usage-queue.js';

const TICK_MS = 50;

const [url = '', queuePrefix = '', rate] = process.argv.slice(2);
const meter = await openEmitter({ url, queuePrefix });
const stop = new AbortController();
for (const end of ['SIGTERM', 'disconnect'] as const) process.once(end, () => stop.abort());
process.channel?.unref();

const started = performance.now();
for (let recorded = 0; !stop.signal.aborted; ) {
  const due = ((performance.now() - started) / 1000) * Number(rate);
  for (; recorded < due; recorded += 1) meter.record(liveEvent());
  await delay(TICK_MS);
}
await meter.close();
