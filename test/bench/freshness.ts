/** Time from adding an event to the queue until an answer includes it, while 500 others arrive every second. */
import { setTimeout as delay } from 'node:timers/promises';
import { formatTimestamp, MS_PER_HOUR, QUEUE_PREFIX } from '@meterline/catalog';
import type { Queue } from 'bullmq';
import type { Bench } from './bench.js';
import { below, median, percentile } from './figure.js';
import { checked, HttpClient } from './http-client.js';
import { measure } from './measure.js';
import { liveEvent } from './usage-queue.js';

const DATABASE = 'freshness';
const ACCOUNT = 'probe';
const EVENTS_PER_SECOND = 500;
const TICK_MS = 20;
const ROUND_MS = 8_000;
/** How often a probe is sent: an event whose time until it is visible is measured. */
const PROBE_MS = 200;
const POLL_MS = 20;
const GIVE_UP_MS = 30_000;

export const freshness: Bench = {
  name: 'freshness',
  async run({ site, signal }) {
    const key = await site.createKey(ACCOUNT, 'bench-freshness');
    const queue = site.queue(QUEUE_PREFIX);
    const rounds: number[][] = [];
    try {
      await site.withQuery(DATABASE, ({ url }) =>
        site.withIngest({ CLICKHOUSE_DATABASE: DATABASE }, () =>
          measure(async () => {
            const waits = await probeRound(queue, url, key, signal);
            rounds.push(waits);
            return percentile(waits, 0.99);
          }),
        ),
      );
    } finally {
      await site.drop(DATABASE);
    }
    const measured = rounds.slice(1);
    const p50s = measured.map((waits) => median(waits));
    const p99s = measured.map((waits) => percentile(waits, 0.99));
    const what = (share: string) => `enqueued to visible in /metrics, ${share}, at ${EVENTS_PER_SECOND} events/s`;
    const note = `${rounds[0]?.length ?? 0} events waited for in a round; slowest of all ${Math.max(...measured.flat()).toFixed(0)} ms`;
    return [
      { what: what('p50'), value: median(p50s), unit: 'ms', runs: p50s },
      {
        what: what('p99'),
        value: median(p99s),
        unit: 'ms',
        runs: p99s,
        reach: below(median(p99s), 1_000, 'ms'),
        note,
      },
    ];
  },
};

/** @returns how long each probe waited, in milliseconds */
async function probeRound(queue: Queue, url: string, key: string, signal: AbortSignal): Promise<number[]> {
  const http = new HttpClient(64);
  const probes: Promise<number>[] = [];
  const started = performance.now();
  let sent = 0;
  for (let elapsed = 0; elapsed < ROUND_MS; elapsed = performance.now() - started) {
    signal.throwIfAborted();
    const due = Math.floor((elapsed / 1000) * EVENTS_PER_SECOND);
    const jobs = Array.from({ length: Math.max(0, due - sent) }, () => ({ name: 'usage', data: liveEvent() }));
    sent += jobs.length;
    if (jobs.length > 0) await queue.addBulk(jobs);
    if (probes.length * PROBE_MS <= elapsed) probes.push(probe(queue, http, url, key));
    await delay(TICK_MS);
  }
  const waits = await Promise.all(probes);
  http.close();
  return waits;
}

async function probe(queue: Queue, http: HttpClient, url: string, key: string): Promise<number> {
  const name = crypto.randomUUID();
  const now = Date.now();
  const window = { startTime: formatTimestamp(now - MS_PER_HOUR), endTime: formatTimestamp(now + MS_PER_HOUR) };
  const path = `/v0/accounts/${ACCOUNT}/metrics?${new URLSearchParams({ ...window, groupBy: 'resource_name', resourceName: name })}`;
  const started = performance.now();
  await queue.add('usage', { ...liveEvent(), accountId: ACCOUNT, resourceName: name });
  while (performance.now() - started < GIVE_UP_MS) {
    const { text } = checked(await http.send(`${url}${path}`, { authorization: `Bearer ${key}` }));
    if (text.includes(`"${name}"`)) return performance.now() - started;
    await delay(POLL_MS);
  }
  throw new Error(`an event was not visible ${GIVE_UP_MS / 1000} s after it was enqueued`);
}
