/** Measures how long one sender waits for the collector beside a key of another account that sends expensive bodies on many connections. */
import { setTimeout as delay } from 'node:timers/promises';
import { promisify } from 'node:util';
import { gzip } from 'node:zlib';
import { figure, percentile, ratio, WARM_UP_MS } from './figure.js';
import type { Bench } from './fixture.js';
import { liveEvents } from './traffic.js';

const CONNECTIONS = 32;
const EVENTS_PER_BODY = 5_000;
const BODIES = 8;
const ROUND_MS = 6_000;
const PAUSE_MS = 20;

export const collectorNeighbours: Bench = {
  name: 'collector-neighbours',
  run: ({ fixture, signal }) =>
    fixture.withProduct('collector_neighbours', (product) =>
      fixture.withCollector(product, async ({ url }) => {
        const sender = async (account: string, bodies: readonly Buffer[]) => {
          const headers = {
            authorization: `Bearer ${await product.key(account, 'emitter')}`,
            'content-type': 'application/json',
            'content-encoding': 'gzip',
          };
          let sent = 0;
          return async () => {
            const body = new Uint8Array(bodies[sent++ % bodies.length] ?? []);
            const started = performance.now();
            const response = await fetch(`${url}/v0/events`, { method: 'POST', headers, body, signal });
            if (response.status !== 202) throw new Error(`${response.status}: ${await response.text()}`);
            await response.arrayBuffer();
            return performance.now() - started;
          };
        };
        const packed = (account: string, events: number) =>
          promisify(gzip)(JSON.stringify(liveEvents(events).map((event) => ({ ...event, accountId: account }))));
        const heavyBodies = await Promise.all(Array.from({ length: BODIES }, () => packed('heavy', EVENTS_PER_BODY)));
        const sendHeavy = await sender('heavy', heavyBodies);
        const sendSmall = await sender('small', [await packed('small', 1)]);

        const measure = async () => {
          let times: number[] = [];
          for (const length of [WARM_UP_MS, ROUND_MS]) {
            times = [];
            for (const started = performance.now(); performance.now() - started < length; await delay(PAUSE_MS)) {
              times.push(await sendSmall());
            }
          }
          return { median: percentile(times, 0.5), p95: percentile(times, 0.95) };
        };
        const alone = await measure();
        let [isOver, accepted] = [false, 0];
        const started = performance.now();
        const heavy = Array.from({ length: CONNECTIONS }, async () => {
          for (; !isOver; accepted += 1) await sendHeavy();
        });
        const beside = await measure();
        const perSecond = (1_000 * accepted) / (performance.now() - started);
        isOver = true;
        await Promise.all(heavy);
        return [
          figure(
            `p95 beside a key with ${CONNECTIONS} bodies of ${EVENTS_PER_BODY} events in gzip`,
            'ms',
            [beside.p95],
            {
              beside: {
                alone: alone.p95,
                'median alone': alone.median,
                'median beside': beside.median,
                'the other key': [perSecond, 'requests/s'],
              },
              goal: ratio('≤', 5, alone.p95),
            },
          ),
        ];
      }),
    ),
};
