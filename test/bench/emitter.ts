/** What `record` costs its caller: the time of a call, without and with a spool, next to the check of the event alone. */
import { mkdtemp, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { parseUsageEvent } from '@meterline/catalog';
import { type EmitterOptions, openEmitter } from '@meterline/emitter';
import type { Bench } from './bench.js';
import { below, type Figure, median } from './figure.js';
import { measure } from './measure.js';
import { liveEvent } from './usage-queue.js';

const PREFIX = 'bench-emitter';
const MOST_US = 5;
/** Short, so that the scheduler interrupts few of them, and their median shows none. */
const CALLS = 100;
const SERIES = 200;

export const emitter: Bench = {
  name: 'emitter',
  async run({ site, options }) {
    const { eventId: _, timestamp: _timestamp, ...event } = liveEvent();
    const whole = liveEvent();
    const check = median(await measure(() => microseconds(() => parseUsageEvent(whole, Date.now()))));
    const directory = await mkdtemp(join(options.dataDir, 's-'));
    const figures: Figure[] = [];
    const kinds: readonly (readonly [string, Partial<EmitterOptions>])[] = [
      ['record, in memory', {}],
      ['record, written to a spool', { spool: { directory } }],
    ];
    for (const [what, kind] of kinds) {
      const meter = await openEmitter({ url: site.redisUrl, queuePrefix: PREFIX, ...kind });
      const runs = await measure(() => microseconds(() => meter.record(event)));
      await meter.close();
      const value = median(runs);
      const beside = [{ what: 'the check of the event alone', value: check, unit: 'µs' }] as const;
      figures.push({ bench: 'emitter', what, value, unit: 'µs', runs, beside, reach: below(value, MOST_US, 'µs') });
    }
    await site.queue(PREFIX).obliterate({ force: true });
    await rm(directory, { recursive: true });
    return figures;
  },
};

/** The median of a call in many short series, with a turn of the event loop between them for what is sent. */
async function microseconds(call: () => unknown): Promise<number> {
  const series: number[] = [];
  for (let n = 0; n < SERIES; n += 1) {
    const started = performance.now();
    for (let calls = 0; calls < CALLS; calls += 1) call();
    series.push(((performance.now() - started) * 1_000) / CALLS);
    await sleep(1);
  }
  return median(series);
}
