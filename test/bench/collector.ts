/**
 * What the collector takes over HTTP, durably: requests of many events beside a producer that adds the same events with BullMQ's own
 * `addBulk`, and requests of one event beside the plainest service that somebody would write in its place: Express, and
 * `await queue.add()`, without a key, a limit or a check.
 */
import { setTimeout as delay } from 'node:timers/promises';
import { findFreePort } from '@meterline/local-stack';
import type { Queue } from 'bullmq';
import type { Bench } from './bench.js';
import { atLeast, type Figure, median, percentile } from './figure.js';
import { measureInTurn } from './measure.js';
import { postAll, postOf } from './posting.js';
import { ProcessorTimes } from './processor-times.js';
import type { Site } from './site.js';
import { liveEvent } from './usage-queue.js';

const ACCOUNT = 'acme';
const PREFIX = 'bench-collector';
const DIRECT_PREFIX = 'bench-direct';
const EXPRESS_PREFIX = 'bench-express';
/** Requests, or jobs, that are under way at once. */
const AT_ONCE = 64;
const WARM_MS = 500;

interface Case {
  readonly eventsPerRequest: number;
  readonly requests: number;
  /** Jobs in one `addBulk`. */
  readonly bulk: number;
  readonly wanted: number;
}

const CASES: readonly Case[] = [
  { eventsPerRequest: 1, requests: 6_000, bulk: 1, wanted: 0.8 },
  { eventsPerRequest: 100, requests: 600, bulk: 10, wanted: 0.5 },
  { eventsPerRequest: 5_000, requests: 16, bulk: 1, wanted: 0.5 },
];

export const collector: Bench = {
  name: 'collector',
  async run({ site }) {
    const key = await site.createKey(ACCOUNT, 'bench', 'emitter');
    const queue = site.queue(PREFIX);
    const direct = site.queue(DIRECT_PREFIX);
    const figures: Figure[] = [];
    await site.withCollector({ QUEUE_PREFIX: PREFIX }, async ({ pid, url }) => {
      const target = { url, key, queue };
      for (const item of CASES) {
        const what = `requests of ${item.eventsPerRequest}`;
        const add = () => addRate(item, direct);
        const compare = async (peer: string, peerRate: () => Promise<number>, peerPids = {}) => {
          const latencies: number[] = [];
          const spent = new ProcessorTimes({ 'the collector': pid });
          const peerSpent = new ProcessorTimes(peerPids);
          const timed = async () => {
            const stop = peerSpent.start(item.requests);
            const rate = await peerRate();
            stop();
            return rate;
          };
          const [rates, peerRates] = await measureInTurn(
            () => requestRate(item, { ...target, latencies, spent }),
            timed,
          );
          const [value, peerValue] = [median(rates), median(peerRates)];
          figures.push(
            {
              ...{ what, value, unit: 'events/s', runs: rates },
              beside: [
                { what: peer, value: peerValue, unit: 'events/s' },
                { what: 'p99 of a request', value: percentile(latencies, 0.99), unit: 'ms' },
              ],
              reach: atLeast(value / peerValue, item.wanted),
            },
            ...spent.figures(`a request of ${item.eventsPerRequest}`),
            ...peerSpent.figures('a request of 1'),
          );
        };
        if (item.eventsPerRequest > 1) {
          await compare('the same with addBulk', add);
          continue;
        }
        await withExpress(site, (express, server) =>
          compare('Express and queue.add() for each', () => requestRate(item, express), {
            'Express and queue.add()': server,
          }),
        );
      }
    });
    return figures;
  },
};

/** @param work gets where the service is, and its process id */
async function withExpress(site: Site, work: (target: Target, pid: number) => Promise<void>): Promise<void> {
  const port = await findFreePort();
  const url = `http://127.0.0.1:${port}`;
  await site.withScript('./plain-express.js', [site.redisUrl, EXPRESS_PREFIX, String(port)], async ({ pid }) => {
    while (!(await fetch(url).catch(() => undefined))) await delay(WARM_MS);
    await work({ url, key: 'none', queue: site.queue(EXPRESS_PREFIX) }, pid);
  });
}

interface Target {
  /** Of the collector. */
  readonly url: string;
  readonly key: string;
  /** That the collector writes to. */
  readonly queue: Queue;
  /** Is told how long each request took, in milliseconds. */
  readonly latencies?: number[];
  readonly spent?: ProcessorTimes;
}

async function requestRate(
  { eventsPerRequest, requests }: Case,
  { url, key, queue, latencies, spent }: Target,
): Promise<number> {
  const address = `${url}/v0/accounts/${ACCOUNT}/events`;
  const headers = { authorization: `Bearer ${key}`, 'content-type': 'application/json' };
  const posts = Array.from({ length: requests }, () =>
    postOf(address, headers, JSON.stringify(eventsOf(eventsPerRequest))),
  );
  const stop = spent?.start(requests);
  const started = performance.now();
  const took = await postAll(address, posts, { clients: AT_ONCE, wanted: 202 });
  const seconds = (performance.now() - started) / 1000;
  stop?.();
  latencies?.push(...took);
  await emptied(queue);
  return (requests * eventsPerRequest) / seconds;
}

/** What a runtime without a collector does: a job for each request, as many at once. */
async function addRate({ eventsPerRequest, requests, bulk }: Case, queue: Queue): Promise<number> {
  const jobs = Array.from({ length: requests }, () => ({
    name: 'usage',
    data: eventsPerRequest === 1 ? liveEvent() : { events: eventsOf(eventsPerRequest) },
  }));
  const batches = Array.from({ length: Math.ceil(requests / bulk) }, (_, at) => jobs.slice(at * bulk, (at + 1) * bulk));
  const started = performance.now();
  await eachAtOnce(batches.length, async (index) => {
    await queue.addBulk(batches[index] ?? []);
  });
  const seconds = (performance.now() - started) / 1000;
  await emptied(queue);
  return (requests * eventsPerRequest) / seconds;
}

function eventsOf(count: number) {
  return Array.from({ length: count }, () => ({ ...liveEvent(), accountId: ACCOUNT }));
}

async function eachAtOnce(count: number, work: (index: number) => Promise<void>): Promise<void> {
  let next = 0;
  const lane = async () => {
    for (let index = next++; index < count; index = next++) await work(index);
  };
  await Promise.all(Array.from({ length: Math.min(AT_ONCE, count) }, lane));
}

async function emptied(queue: Queue): Promise<void> {
  await queue.obliterate({ force: true });
  await delay(WARM_MS);
}
