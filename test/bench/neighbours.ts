/**
 * One account's greedy clients and another account's polite one: how long the polite one waits, alone and beside the others,
 * and what the others get. With the limits off, as before them, and with the defaults.
 */
import type { GroupByDimension } from '@meterline/catalog';
import { MS_PER_DAY } from '@meterline/catalog';
import { NO_LIMITS, type ServiceEnvironment } from '../harness/services.js';
import type { Bench, BenchContext } from './bench.js';
import { CORPUS_END } from './corpus.js';
import { type Figure, percentile } from './figure.js';
import { HttpClient } from './http-client.js';
import { countHeavyStatements, fillUsage } from './many-groups.js';
import { metricsPath } from './questions.js';

const DATABASE = 'neighbours';
const GREEDY_CLIENTS = 64;
const GREEDY = 'greedy';
const POLITE = 'polite';
const GREEDY_GROUPS = 120_000;
const DAYS = 90;
const ROUND_MS = 10_000;
/** Until the greedy clients' account is known to keep the engine busy. */
const WARM_UP_MS = 4_000;
/** Between two of the polite client's questions: it reads what it got. */
const POLITE_PAUSE_MS = 100;
const ALLOWED = 3;
/** What the rate limit of the third round lets through; heavy questions alone take longer than that on two cores. */
const LOW_RATE = 10;

const WINDOW = {
  startTime: Math.floor(CORPUS_END / MS_PER_DAY) * MS_PER_DAY - DAYS * MS_PER_DAY,
  endTime: Math.floor(CORPUS_END / MS_PER_DAY) * MS_PER_DAY,
};

const HEAVY: readonly GroupByDimension[] = ['resource_uuid', 'resource_name', 'billing_dimension'];
const SUMMARY: readonly GroupByDimension[] = ['billing_dimension'];

interface Round {
  readonly alone: readonly number[];
  readonly beside: readonly number[];
  /** Answers to the greedy clients in a second, by status. */
  readonly rates: ReadonlyMap<number, number>;
  /** The most statements of the greedy account that the engine worked on at once. */
  readonly atOnce: number;
}

export const neighbours: Bench = {
  name: 'neighbours',
  async run(context) {
    const warehouse = await context.site.warehouse(DATABASE);
    const start = WINDOW.startTime / 1000;
    await fillUsage(warehouse, {
      account: GREEDY,
      start,
      days: DAYS,
      groups: GREEDY_GROUPS,
      events: 3 * GREEDY_GROUPS,
    });
    await fillUsage(warehouse, { account: POLITE, start, days: DAYS, groups: 300, events: 100_000 });
    const lowRate = { ACCOUNT_RATE: String(LOW_RATE), METERLINE_CONSTANTS: JSON.stringify({ burstSeconds: 1 }) };
    try {
      return [
        ...figures('limits off', await play(context, NO_LIMITS, HEAVY)),
        ...figures('heavy questions, default limits', await play(context, {}, HEAVY), { atOnce: 2 }),
        ...figures(`summaries, ${LOW_RATE} a second allowed`, await play(context, lowRate, SUMMARY), {
          rate: LOW_RATE,
        }),
      ];
    } finally {
      await context.site.drop(DATABASE);
    }
  },
};

interface Allowed {
  /** Statements of one caller. */
  readonly atOnce?: number;
  /** Requests of the account in a second. */
  readonly rate?: number;
}

function figures(title: string, { alone, beside, rates, atOnce }: Round, allowed?: Allowed): Figure[] {
  const [p95Alone, p95] = [percentile(alone, 0.95), percentile(beside, 0.95)];
  const answered = rates.get(200) ?? 0;
  const refused = [...rates].reduce((sum, [status, rate]) => (status === 200 ? sum : sum + rate), 0);
  return [
    {
      what: `p95 of one client beside ${GREEDY_CLIENTS} of another account: ${title}`,
      value: p95,
      unit: 'ms',
      runs: beside,
      beside: [{ what: 'alone', value: p95Alone, unit: 'ms' }],
      ...(allowed && {
        reach: { text: `${(p95 / p95Alone).toFixed(2)}× of ≤ ${ALLOWED}×`, met: p95 <= ALLOWED * p95Alone },
      }),
    },
    {
      what: `answers to the ${GREEDY_CLIENTS}: ${title}`,
      value: answered,
      unit: 'requests/s',
      beside: [{ what: 'refused', value: refused, unit: 'requests/s' }],
      ...(allowed?.rate !== undefined && {
        reach: { text: `about ${allowed.rate} a second`, met: Math.abs(answered - allowed.rate) <= 0.1 * allowed.rate },
      }),
      ...(allowed?.atOnce !== undefined && {
        reach: { text: `${atOnce} of ${allowed.atOnce} statements at once`, met: atOnce === allowed.atOnce },
      }),
    },
  ];
}

async function play(
  { site, signal }: BenchContext,
  environment: ServiceEnvironment,
  groupBy: readonly GroupByDimension[],
): Promise<Round> {
  const [greedyKey, politeKey] = [await site.createKey(GREEDY, 'greedy'), await site.createKey(POLITE, 'polite')];
  return site.withQuery(
    DATABASE,
    async ({ url }) => {
      const http = new HttpClient(GREEDY_CLIENTS + 1);
      const politePath = metricsPath(POLITE, { window: WINDOW, resolution: 'daily', groupBy: ['resource_name'] });
      const greedyPath = metricsPath(GREEDY, { window: WINDOW, resolution: 'daily', groupBy });
      const askPolitely = async (milliseconds: number) => {
        const times: number[] = [];
        for (const started = performance.now(); performance.now() - started < milliseconds; ) {
          signal.throwIfAborted();
          const answer = await http.send(`${url}${politePath}`, { authorization: `Bearer ${politeKey}` });
          if (answer.status !== 200) throw new Error(`the polite client got ${answer.status}: ${answer.text}`);
          times.push(answer.ms);
          await new Promise((resolve) => setTimeout(resolve, POLITE_PAUSE_MS));
        }
        return times;
      };
      let isOn = true;
      let statuses: number[] = [];
      let atOnce = 0;
      const askGreedily = async () => {
        while (isOn) {
          try {
            const { status } = await http.send(`${url}${greedyPath}`, { authorization: `Bearer ${greedyKey}` });
            statuses.push(status);
          } catch (error) {
            // At the end of the round the connections are closed.
            if (isOn) throw error;
          }
        }
      };
      const watch = async () => {
        while (isOn) {
          atOnce = Math.max(atOnce, await countHeavyStatements(await site.warehouse(DATABASE)));
          await new Promise((resolve) => setTimeout(resolve, 200));
        }
      };
      try {
        await askPolitely(WARM_UP_MS);
        const alone = await askPolitely(ROUND_MS);
        const clients = [...Array.from({ length: GREEDY_CLIENTS }, askGreedily), watch()];
        await askPolitely(WARM_UP_MS);
        statuses = [];
        const started = performance.now();
        const beside = await askPolitely(ROUND_MS);
        const seconds = (performance.now() - started) / 1000;
        const counted = statuses;
        isOn = false;
        http.close();
        await Promise.all(clients);
        const rates = new Map<number, number>();
        for (const status of counted) rates.set(status, (rates.get(status) ?? 0) + 1 / seconds);
        return { alone, beside, rates, atOnce };
      } finally {
        isOn = false;
        http.close();
      }
    },
    environment,
  );
}
