/** One account's greedy clients and another account's polite one: how long the polite one waits, alone and beside the others. */
import { setTimeout as delay } from 'node:timers/promises';
import { MS_PER_DAY } from '@meterline/catalog';
import { CORPUS_END } from './corpus.js';
import { atMost, percentile } from './figure.js';
import { fillUsage, SANDBOX } from './fill.js';
import type { Bench } from './fixture.js';
import { HttpClient } from './http.js';
import { metricsPath } from './queries.js';

const DATABASE = 'neighbours';
const GREEDY_CLIENTS = 64;
const GREEDY = { account: 'greedy', groups: 120_000, rows: 360_000 };
const POLITE = { account: 'polite', groups: 300, rows: 100_000 };
const DAYS = 90;
const ROUND_MS = 10_000;
/** Until the greedy clients' account is known to keep the engine busy. */
const WARM_UP_MS = 4_000;
/** Between two of the polite client's queries: it reads what it got. */
const POLITE_PAUSE_MS = 100;

const END = Math.floor(CORPUS_END / MS_PER_DAY) * MS_PER_DAY;
const QUERY = { window: { startTime: END - DAYS * MS_PER_DAY, endTime: END }, resolution: 'daily' } as const;
const GREEDY_PATH = metricsPath(GREEDY.account, {
  ...QUERY,
  groupBy: ['resource_uuid', 'resource_name', 'billing_dimension'],
});
const POLITE_PATH = metricsPath(POLITE.account, { ...QUERY, groupBy: ['resource_name'] });
/** Spread over the days and the groups, all with a cost. */
const COLUMNS = {
  ...{ ...SANDBOX, account: '{account: String}', at: '{start: Int64} + number * 7919000 % {span: Int64}' },
  resourceName: "concat('sandbox-', toString(number % {groups: UInt32} % 1000))",
  resourceUuid: "concat('uuid-', toString(number % {groups: UInt32}))",
};

export const neighbours: Bench = {
  name: 'neighbours',
  async run({ fixture, signal }) {
    const product = await fixture.product(DATABASE);
    for (const usage of [GREEDY, POLITE]) {
      const span = DAYS * MS_PER_DAY;
      await fillUsage(product.warehouse, COLUMNS, [], { ...usage, start: END - span, span });
    }
    const [greedyKey, politeKey] = [await product.key(GREEDY.account), await product.key(POLITE.account)];
    const http = new HttpClient(GREEDY_CLIENTS + 1);
    const [alone, beside, answered] = await fixture.withQuery(
      product,
      async ({ url }) => {
        const askPolitely = async (milliseconds: number) => {
          const times: number[] = [];
          for (const started = performance.now(); performance.now() - started < milliseconds; ) {
            signal.throwIfAborted();
            times.push((await http.ok(`${url}${POLITE_PATH}`, politeKey)).ms);
            await delay(POLITE_PAUSE_MS);
          }
          return times;
        };
        let [isOn, count] = [true, 0];
        const askGreedily = async () => {
          while (isOn) {
            const { status } = await http.get(`${url}${GREEDY_PATH}`, { authorization: `Bearer ${greedyKey}` });
            if (status === 200) count += 1;
          }
        };
        await askPolitely(WARM_UP_MS);
        const waits = await askPolitely(ROUND_MS);
        // At the end of the round the connections are closed.
        const clients = Array.from({ length: GREEDY_CLIENTS }, () => askGreedily().catch(() => undefined));
        await askPolitely(WARM_UP_MS);
        count = 0;
        const others = await askPolitely(ROUND_MS).finally(() => {
          isOn = false;
          http.close();
        });
        await Promise.all(clients);
        return [waits, others, count] as const;
      },
      {},
    );
    await fixture.drop(DATABASE);
    const [p95Alone, p95] = [percentile(alone, 0.95), percentile(beside, 0.95)];
    return [
      {
        ...{
          what: `p95 of one client beside ${GREEDY_CLIENTS} of another account`,
          value: p95,
          unit: 'ms',
          runs: beside,
        },
        beside: [
          { what: 'alone', value: p95Alone, unit: 'ms' },
          { what: `responses to the ${GREEDY_CLIENTS}`, value: (1000 * answered) / ROUND_MS, unit: 'requests/s' },
        ],
        reach: atMost(p95 / p95Alone, 3),
      },
    ];
  },
};
