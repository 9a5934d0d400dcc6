/** Two shards behind a balancer, two ingest and two query processes, each process and command as a user of its own. */
import { AccountDirectory, ApiKeyStore, REDIS_PREFIX } from '@meterline/access';
import { type LocalStack, startLocalStack } from '@meterline/local-stack';
import { shardIndex } from '@meterline/warehouse';
import { runCommand } from '../cli/run-command.js';
import type { MeterlineOptions } from '../cli/run-meterline.js';
import { drained, enqueueData, openPipeline, type Pipeline } from '../e2e/pipeline.js';
import {
  type HttpProcess,
  killServices,
  NO_LIMITS,
  type ServiceProcess,
  startIngest,
  startQuery,
} from '../services.js';
import { startBalancer } from '../setup/balancer.mjs';
import { uniquePrefix } from '../stack.js';

export const WINDOW = { startTime: '2026-01-01T00:00:00Z', endTime: '2026-01-03T00:00:00Z' };
export const USD_PER_GBS = 0.0000115;

interface Answer {
  readonly status: number;
  /** In GB-seconds, as its cost has it. */
  readonly usage: number | undefined;
  readonly names: string[];
}

export interface TwoShards {
  readonly stack: LocalStack;
  readonly pipeline: Pipeline;
  /** All ingest and query processes. */
  readonly services: readonly ServiceProcess[];
  /** Another query process, which has the addresses of both servers. */
  startQuery(): Promise<HttpProcess>;
  createKey(account: string): Promise<string>;
  /** As one job, and resolves when it is stored. */
  send(...events: object[]): Promise<void>;
  /** From each query process in turn, all its pages; every answer must be the same. */
  ask(account: string, window?: typeof WINDOW): Promise<Answer>;
  /** A command of the operator. */
  operate(args: readonly string[], options?: MeterlineOptions): ReturnType<typeof runCommand>;
  close(): Promise<void>;
}

export async function openTwoShards(): Promise<TwoShards> {
  const stack = await startLocalStack({ shards: 2 });
  const balancer = await startBalancer(stack.shards.map(({ httpPort }) => httpPort));
  const pipeline = await openPipeline({ redisUrl: stack.redis.url, prefix: 'bull', shards: stack.shards });
  const keys = new ApiKeyStore(pipeline.redis, new AccountDirectory(pipeline.redis, REDIS_PREFIX), REDIS_PREFIX);
  const envOf = (clickhouse: 'ingest' | 'query' | 'operator', redis: 'worker' | 'query' | 'operator') => {
    const CLICKHOUSE_PASSWORD = stack.clickhouse.passwords[clickhouse];
    return { ...pipeline.env, CLICKHOUSE_USER: clickhouse, CLICKHOUSE_PASSWORD, REDIS_URL: stack.redis.urls[redis] };
  };
  const ingest = { ...envOf('ingest', 'worker'), SEAL_EVERY_MS: '200', SEAL_DELAY_MS: '0' };
  const workers = [await startIngest(ingest), await startIngest(ingest)];
  const toEither = { CLICKHOUSE_URL: balancer.url, CURSOR_SECRET: 'x'.repeat(32) };
  const query = { ...envOf('query', 'query'), ...NO_LIMITS, ...toEither };
  const apis = await Promise.all([startQuery(query), startQuery(query)]);
  const createKey = async (account: string) =>
    (await keys.create({ account, role: 'admin', clientId: 'shards' }, new Date())).key;
  return {
    stack,
    pipeline,
    startQuery: () => startQuery({ ...query, CLICKHOUSE_URL: pipeline.env.CLICKHOUSE_URL ?? '' }),
    createKey,
    services: [...workers, ...apis],
    send: async (...events) => {
      await enqueueData(pipeline.queue, { events });
      await drained(pipeline.queue);
    },
    ask: async (account, window = WINDOW) => {
      const key = await createKey(account);
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
      await killServices();
      await pipeline.close();
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

/** Of each shard a new account. */
export function newAccounts(): [string, string] {
  const names = Array.from({ length: 64 }, (_, index) => `${uniquePrefix()}-${index}`);
  const [first, second] = [0, 1].map((shard) => names.find((name) => shardIndex(name, 2) === shard));
  if (!first || !second) throw new Error('64 accounts are all on one shard');
  return [first, second];
}
