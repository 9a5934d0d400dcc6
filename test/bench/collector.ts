/**
 * What the collector takes over HTTP, durably: requests of many events beside a producer that adds the same events with BullMQ's own
 * `addBulk`, and requests of one event beside the plainest service that somebody would write in its place: Express, and
 * `await queue.add()`, without a key, a limit or a check.
 */
import { setTimeout as delay } from 'node:timers/promises';
import { findFreePort } from '@meterline/local-stack';
import type { Queue } from 'bullmq';
import { type Figure, figure, measureInTurn, median, ProcessorTimes, percentile, ratio } from './figure.js';
import type { Bench } from './fixture.js';
import { emptied, jobOf, liveEvents, postAll, REST_MS } from './traffic.js';

const ACCOUNT = 'acme';
/** Requests, or jobs, that are under way at once. */
const AT_ONCE = 64;

interface Case {
  readonly eventsPerRequest: number;
  readonly requests: number;
  /** Jobs in one `addBulk`. */
  readonly bulk: number;
}
const MILLION = 1_000_000;
const ONE: Case = { eventsPerRequest: 1, requests: 6_000, bulk: 1 };
const MANY: readonly (Case & { readonly wanted: number })[] = [
  { eventsPerRequest: 100, requests: 600, bulk: 10, wanted: 0.5 },
  { eventsPerRequest: 5_000, requests: 16, bulk: 1, wanted: 0.4 },
];

interface Target {
  readonly url: string;
  readonly key: string;
  readonly queue: Queue;
  readonly latencies: number[];
  readonly spent: ProcessorTimes;
}

export const collector: Bench = {
  name: 'collector',
  run: ({ fixture }) =>
    fixture.withProduct('collector', async (product) => {
      const key = await product.key(ACCOUNT, 'emitter');
      const figures: Figure[] = [];
      await fixture.withQueue('plain', (other) =>
        fixture.withCollector(product, async ({ url, pid }) => {
          const compare = async (item: Case, peer: string, peerRate: () => Promise<number>, wanted: number) => {
            const spent = new ProcessorTimes({ 'the collector': pid });
            const own: Target = { url, key, queue: product.queue, latencies: [], spent };
            const [rates = [], peerRates = []] = await measureInTurn([() => requestRate(item, own), peerRate]);
            const p99 = percentile(own.latencies, 0.99);
            figures.push(
              figure(`requests of ${item.eventsPerRequest}`, 'events/s', rates, {
                beside: { [peer]: median(peerRates), 'p99 of a request': [p99, 'ms'] },
                goal: ratio('≥', wanted, median(peerRates)),
              }),
              ...spent.figures(
                `a million events in requests of ${item.eventsPerRequest}`,
                MILLION / item.eventsPerRequest,
              ),
            );
          };
          const port = await findFreePort();
          await fixture.withPeer(['plain', 'express', port], async (peer) => {
            const at = `http://127.0.0.1:${port}`;
            while (!(await fetch(at).catch(() => undefined))) await delay(REST_MS);
            const spent = new ProcessorTimes({ 'Express and queue.add()': peer });
            const express: Target = { url: at, key, queue: other, latencies: [], spent };
            await compare(ONE, 'Express and queue.add() for each', () => requestRate(ONE, express), 0.65);
            figures.push(...spent.figures('a million requests of 1', MILLION));
          });
          for (const item of MANY) {
            await compare(item, 'the same with addBulk', () => addRate(item, other), item.wanted);
          }
        }),
      );
      return figures;
    }),
};

/** Events a second. */
async function requestRate({ eventsPerRequest, requests }: Case, target: Target): Promise<number> {
  const { url, key, queue, latencies, spent } = target;
  const bodies = Array.from({ length: requests }, () => {
    return JSON.stringify(liveEvents(eventsPerRequest).map((event) => ({ ...event, accountId: ACCOUNT })));
  });
  const started = performance.now();
  const took = await spent.of(requests, () => postAll(`${url}/v0/events`, key, bodies, AT_ONCE));
  const seconds = (performance.now() - started) / 1000;
  latencies.push(...took);
  await emptied(queue);
  return (requests * eventsPerRequest) / seconds;
}

/** What a runtime without a collector does: a job for each request, as many at once. */
async function addRate({ eventsPerRequest, requests, bulk }: Case, queue: Queue): Promise<number> {
  const jobs = Array.from({ length: requests }, () => jobOf(eventsPerRequest));
  const started = performance.now();
  const adding = async () => {
    while (jobs.length > 0) await queue.addBulk(jobs.splice(0, bulk));
  };
  await Promise.all(Array.from({ length: AT_ONCE }, adding));
  const seconds = (performance.now() - started) / 1000;
  await emptied(queue);
  return (requests * eventsPerRequest) / seconds;
}
