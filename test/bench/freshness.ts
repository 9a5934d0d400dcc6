/** Time from adding an event to the queue until a response includes it, while 500 others arrive every second. */
import { setTimeout as delay } from 'node:timers/promises';
import { formatTimestamp, MS_PER_HOUR } from '@meterline/catalog';
import type { Product } from '../harness/product.js';
import { below, measure, median, medianOf, percentile } from './figure.js';
import type { Bench } from './fixture.js';
import { HttpClient } from './http.js';
import { jobOf, liveEvent } from './usage-queue.js';

const DATABASE = 'freshness';
const ACCOUNT = 'probe';
const EVENTS_PER_SECOND = 500;
const TICK_MS = 20;
const ROUND_MS = 8_000;
/** How often a probe is sent: an event whose time until it is visible is measured. */
const PROBE_MS = 200;
const GIVE_UP_MS = 30_000;

export const freshness: Bench = {
  name: 'freshness',
  async run({ fixture, signal }) {
    const product = await fixture.product(DATABASE);
    const key = await product.key(ACCOUNT);
    const p50s: number[] = [];
    const p99s = await fixture.withQuery(product, ({ url }) =>
      fixture.withIngest(product, () =>
        measure(async () => {
          signal.throwIfAborted();
          const waits = await probeRound(product, url, key);
          p50s.push(median(waits));
          return percentile(waits, 0.99);
        }),
      ),
    );
    await fixture.drop(DATABASE);
    const what = (share: string) => `enqueued to visible in /metrics, ${share}, at ${EVENTS_PER_SECOND} events/s`;
    return [
      medianOf(what('p50'), 'ms', p50s.slice(1)),
      { ...medianOf(what('p99'), 'ms', p99s), reach: below(median(p99s), 1_000, 'ms') },
    ];
  },
};

/** @returns how long each probe waited, in milliseconds */
async function probeRound({ queue }: Product, url: string, key: string): Promise<number[]> {
  const http = new HttpClient(64);
  const probe = async () => {
    const name = crypto.randomUUID();
    const now = Date.now();
    const window = { startTime: formatTimestamp(now - MS_PER_HOUR), endTime: formatTimestamp(now + MS_PER_HOUR) };
    const query = new URLSearchParams({ ...window, groupBy: 'resource_name', resourceName: name });
    const started = performance.now();
    await queue.add('usage', { ...liveEvent(), accountId: ACCOUNT, resourceName: name });
    while (performance.now() - started < GIVE_UP_MS) {
      const { body } = await http.ok(`${url}/v0/accounts/${ACCOUNT}/metrics?${query}`, key);
      if (body.includes(`"${name}"`)) return performance.now() - started;
      await delay(TICK_MS);
    }
    throw new Error(`an event was not visible ${GIVE_UP_MS / 1000} s after it was enqueued`);
  };
  const probes: Promise<number>[] = [];
  const started = performance.now();
  let sent = 0;
  for (let elapsed = 0; elapsed < ROUND_MS; elapsed = performance.now() - started) {
    const due = Math.floor((elapsed / 1000) * EVENTS_PER_SECOND);
    if (due > sent) await queue.addBulk(Array.from({ length: due - sent }, () => jobOf(1)));
    sent = due;
    if (probes.length * PROBE_MS <= elapsed) probes.push(probe());
    await delay(TICK_MS);
  }
  return Promise.all(probes).finally(() => http.close());
}
