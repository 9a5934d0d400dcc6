/** Two shards behind a balancer, two ingest and two query processes, each process and command as a user of its own. */

import { type Servers, startServers } from '@meterline/local-stack';
import type { Warehouse } from '@meterline/warehouse';
import { runCommand } from '../cli/run-command.js';
import type { MeterlineOptions } from '../cli/run-meterline.js';
import { type Product, startProduct } from '../harness/product.js';
import {
  type HttpProcess,
  NO_LIMITS,
  type ServiceProcess,
  startIngest,
  startQuery,
  withConstants,
} from '../harness/services.js';
import { select, uniquePrefix } from '../harness/stack.js';
import { startBalancer } from '../setup/balancer.mjs';

export const WINDOW = { startTime: '2026-01-01T00:00:00Z', endTime: '2026-01-03T00:00:00Z' };
export const USD_PER_GBS = 0.0000115;

interface Answer {
  readonly status: number;
  /** In GB-seconds, as its cost has it. */
  readonly usage: number | undefined;
  readonly names: string[];
}

export interface TwoShards {
  readonly stack: Servers;
  readonly product: Product;
  /** All ingest and query processes. */
  readonly services: readonly ServiceProcess[];
  /** Another query process, which has the addresses of both servers. */
  startQuery(): Promise<HttpProcess>;
  /** Of each shard a new account, in the order of the shards. */
  newAccounts(): readonly [string, string];
  /** From each query process in turn, all its pages; every answer must be the same. */
  ask(account: string, window?: typeof WINDOW): Promise<Answer>;
  /** A command of the operator. */
  operate(args: readonly string[], options?: MeterlineOptions): ReturnType<typeof runCommand>;
  close(): Promise<void>;
}

export async function openTwoShards(): Promise<TwoShards> {
  const stack = await startServers({ shards: 2 });
  const balancer = await startBalancer(stack.shards.map(({ httpPort }) => httpPort));
  const product = await startProduct({ redisUrl: stack.redis.url, prefix: 'bull', clickhouse: stack.shards });
  const names = await accountNames(product.warehouse);
  const envOf = (clickhouse: 'ingest' | 'query' | 'operator', redis: 'worker' | 'query' | 'operator') => {
    const CLICKHOUSE_PASSWORD = stack.clickhouse.passwords[clickhouse];
    return { ...product.env, CLICKHOUSE_USER: clickhouse, CLICKHOUSE_PASSWORD, REDIS_URL: stack.redis.urls[redis] };
  };
  const ingest = withConstants(envOf('ingest', 'worker'), { maintenanceEveryMs: 200, sealDelayMs: 0 });
  const workers = [await startIngest(ingest), await startIngest(ingest)];
  const query = { ...envOf('query', 'query'), ...NO_LIMITS, CLICKHOUSE_URL: balancer.url };
  const apis = await Promise.all([startQuery(query), startQuery(query)]);
  return {
    stack,
    product,
    startQuery: () => startQuery({ ...query, CLICKHOUSE_URL: product.env.CLICKHOUSE_URL ?? '' }),
    newAccounts: () => {
      const pair = names.pop();
      if (!pair) throw new Error('no more names');
      return pair;
    },
    services: [...workers, ...apis],
    ask: async (account, window = WINDOW) => {
      const key = await product.key(account);
      const answers: Answer[] = [];
      // Twice each, so that the balancer leads every statement to either server.
      for (const [turn] of [apis, apis].flat().entries()) {
        const inTurn = (page: number) => apis[(turn + page) % apis.length];
        answers.push(await askPages(inTurn, account, key, window));
      }
      const [first, ...others] = answers.map((answer) => JSON.stringify(answer));
      const other = others.find((answer) => answer !== first);
      if (other) throw new Error(`two answers to one question: ${first} and ${other}`);
      return answers[0] ?? { status: 0, usage: undefined, names: [] };
    },
    operate: (args, options = {}) => runCommand(args, { ...options, env: envOf('operator', 'operator') }),
    close: async () => {
      await product.close();
      balancer.stop();
      await stack.stop();
    },
  };
}

/** @param api that is asked for a page */
async function askPages(
  api: (page: number) => HttpProcess | undefined,
  account: string,
  key: string,
  window: typeof WINDOW,
): Promise<Answer> {
  const names: string[] = [];
  let usage: number | undefined;
  let cursor = '';
  for (let page = 0; page === 0 || cursor !== ''; page += 1) {
    const query = new URLSearchParams({ ...window, groupBy: 'resource_name', limit: '2', cursor });
    const url = `${api(page)?.url}/v0/accounts/${account}/metrics?${query}`;
    const response = await fetch(url, { headers: { authorization: `Bearer ${key}` } });
    const body = await response.json();
    if (response.status !== 200) return { status: response.status, usage: undefined, names };
    usage = Math.round((body.summary.totalCost / USD_PER_GBS) * 10) / 10;
    names.push(...body.data.map(({ resourceName }: { resourceName: string }) => resourceName));
    cursor = body.meta.nextCursor;
  }
  return { status: 200, usage, names: names.sort() };
}

/** Names, of which the engine puts as many on each of the two shards as tests need. */
async function accountNames(warehouse: Warehouse): Promise<(readonly [string, string])[]> {
  const prefix = uniquePrefix();
  const query = `
SELECT cityHash64(name) % 2 AS shard, groupArray(concat({prefix: String}, '-', toString(number)) AS name) AS names
FROM numbers(200) GROUP BY shard ORDER BY shard`;
  const [first, second] = await select<{ names: string[] }>(warehouse, query, { prefix });
  return (first?.names ?? []).flatMap((name, index) => {
    const other = second?.names[index];
    return other === undefined ? [] : [[name, other] as const];
  });
}
