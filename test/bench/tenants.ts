/**
 * A platform with one key: an emitter that records for 10,000 accounts, beside the same for one account; and a request with an event of
 * each of 300 accounts.
 */
import { fork } from 'node:child_process';
import { once } from 'node:events';
import { z } from 'zod';
import { testProgram } from '../harness/programs.js';
import { type Figure, figure, limit, measure, measureInTurn, median, ratio } from './figure.js';
import type { Bench } from './fixture.js';
import { emptied, liveEvent, postAll } from './traffic.js';

const TENANTS = 10_000;
const IN_A_REQUEST = 300;
const EVENTS = 100_000;

const report = z.object({ eventsPerSecond: z.number(), requests: z.number(), residentMiB: z.number() });

export const tenants: Bench = {
  name: 'tenants',
  run: ({ fixture }) =>
    fixture.withProduct('tenants', (product) =>
      fixture.withCollector(product, async ({ url }) => {
        const key = await product.key(undefined, 'emitter');
        const reports: z.output<typeof report>[] = [];
        const emit = async (accounts: number) => {
          const args = [url, key, accounts, EVENTS].map(String);
          const [message] = await once(fork(testProgram('bench/tenants-program'), args), 'message');
          await emptied(product.queue);
          const result = report.parse(message);
          if (accounts === TENANTS) reports.push(result);
          return result.eventsPerSecond;
        };
        const [rates = [], ofOne = []] = await measureInTurn([() => emit(TENANTS), () => emit(1)]);
        const requestMs = async () => {
          const events = Array.from({ length: IN_A_REQUEST }, (_, n) => ({ ...liveEvent(), accountId: `tenant-${n}` }));
          const took = await postAll(`${url}/v0/events`, key, [JSON.stringify(events)], 1);
          await emptied(product.queue);
          return median(took);
        };
        const times = await measure(requestMs);
        const of = (what: keyof z.output<typeof report>) => reports.map((each) => each[what]);
        const figures: Figure[] = [
          figure(`an emitter, ${TENANTS} accounts`, 'events/s', rates, {
            beside: { 'one account': median(ofOne) },
            goal: ratio('≥', 0.8, median(ofOne)),
          }),
          figure(`requests for ${EVENTS} events of ${TENANTS} accounts`, 'requests', of('requests'), {
            goal: limit('≤', EVENTS / 250, 'requests'),
          }),
          figure(`resident memory of that program at its peak`, 'MB', of('residentMiB')),
          figure(`a request with events of ${IN_A_REQUEST} accounts`, 'ms', times, { goal: limit('≤', 200, 'ms') }),
        ];
        return figures;
      }),
    ),
};
