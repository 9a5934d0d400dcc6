/**
 * Two shards, two ingest and two query processes: what is stored, repaired, rejected, settled and erased is exact on both,
 * a query of one account is asked of its shard alone, and a shard that dies takes only its own accounts with it. The
 * query processes have one address of ClickHouse, which leads each request to the next of the two servers. Every process and
 * command is a user of its own, as with `npm start`.
 */
import { afterAll, beforeAll, expect, it } from '@jest/globals';
import { type Servers, startServers } from '@meterline/local-stack';
import type { Warehouse } from '@meterline/warehouse';
import { type MeterlineOptions, runCommand } from '../cli/run-command.js';
import { usageEvent } from '../harness/events.js';
import { type Product, startProduct } from '../harness/product.js';
import { whileFrozen } from '../harness/programs.js';
import { drained, enqueueData } from '../harness/queue.js';
import {
  type HttpProcess,
  NO_LIMITS,
  type ServiceProcess,
  startIngest,
  startQuery,
  withConstants,
} from '../harness/services.js';
import { execute, select, uniquePrefix } from '../harness/stack.js';
import { until } from '../harness/waiting.js';
import { startBalancer } from '../setup/balancer.mjs';

const WINDOW = { startTime: '2026-01-01T00:00:00Z', endTime: '2026-01-03T00:00:00Z' };
const USD_PER_GBS = 0.0000115;

interface TestResponse {
  readonly status: number;
  /** In GB-seconds, as its cost has it. */
  readonly usage: number | undefined;
  readonly names: string[];
}

interface TwoShards {
  readonly stack: Servers;
  readonly product: Product;
  /** All ingest and query processes. */
  readonly services: readonly ServiceProcess[];
  /** Another query process, which has the addresses of both servers. */
  startQuery(): Promise<HttpProcess>;
  /** A new account of each shard, in the order of the shards. */
  newAccounts(): readonly [string, string];
  /** From each query process in turn, all its pages; every response must be the same. */
  ask(account: string, window?: typeof WINDOW): Promise<TestResponse>;
  /** A command of the operator. */
  operate(args: readonly string[], options?: MeterlineOptions): ReturnType<typeof runCommand>;
  close(): Promise<void>;
}

async function openTwoShards(): Promise<TwoShards> {
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
      const responses: TestResponse[] = [];
      // Twice each, so that the balancer leads every statement to either server.
      for (const [turn] of [apis, apis].flat().entries()) {
        const inTurn = (page: number) => apis[(turn + page) % apis.length];
        responses.push(await askPages(inTurn, account, key, window));
      }
      const [first, ...others] = responses.map((result) => JSON.stringify(result));
      const other = others.find((result) => result !== first);
      if (other) throw new Error(`two responses to one query: ${first} and ${other}`);
      return responses[0] ?? { status: 0, usage: undefined, names: [] };
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
): Promise<TestResponse> {
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

let two: TwoShards;

beforeAll(async () => {
  two = await openTwoShards();
});
afterAll(() => two.close());

const event = (account: string, n: number, changes: object = {}) =>
  usageEvent(n, { accountId: account, resourceName: `r${n}`, ...changes });

it('two shards keep the figures of a month whose events are dropped from both', async () => {
  const accounts = two.newAccounts();
  const at = { timestamp: '2025-11-05T10:10:00Z' };
  await two.product.send(...accounts.flatMap((account) => [event(account, 1, at), event(account, 2, at)]));
  const window = { startTime: '2025-11-01T00:00:00Z', endTime: '2025-12-01T00:00:00Z' };
  const figures = { status: 200, usage: 2, names: ['r1', 'r2'] };
  for (const account of accounts) expect(await two.ask(account, window)).toEqual(figures);
  await until('both shards are sealed', async () => {
    return (await two.operate(['retention', 'close', '--before', '2025-12', '--yes'])).code === 0;
  });
  expect(await two.operate(['retention', 'drop', '--yes'])).toMatchObject({
    code: 0,
    stdout: 'Dropped the events of 2025-11.\n',
  });
  for (const shard of two.product.shards.all)
    expect(await select(shard, 'SELECT event_id FROM usage_events')).toEqual([]);
  for (const account of accounts) {
    const within = { ...window, startTime: '2025-11-05T10:00:00.001Z' };
    await until('both processes know', async () => (await two.ask(account, within)).status === 400);
    expect(await two.ask(account, window)).toEqual(figures);
  }
});

it('two shards find rollup rows that differ, and repair them', async () => {
  const [, second] = two.newAccounts();
  await two.product.send(event(second, 1), event(second, 2));
  const day = "account_id = {account: String} AND bucket = '2026-01-01 00:00:00'";
  const rollups = () =>
    select(two.product.warehouse, `SELECT version FROM usage_daily FINAL WHERE ${day}`, { account: second });
  await until('its rollups are there', async () => (await rollups()).length === 1);
  const remove = `ALTER TABLE usage_daily DELETE WHERE ${day}`;
  for (const shard of two.product.shards.all) await execute(shard, remove, { account: second });
  expect(await two.operate(['audit', '--account', second])).toMatchObject({ code: 1 });
  expect(await two.operate(['audit', '--account', second, '--repair'])).toMatchObject({ code: 0 });
  expect(await rollups()).toHaveLength(1);
  expect(await two.ask(second)).toMatchObject({ usage: 2 });
});

it('two shards keep what is rejected, send it again, discard it, and erase an account and nothing of another', async () => {
  const pair = two.newAccounts();
  const operate = async (account: string, ...args: readonly string[]) =>
    expect(await two.operate([...args, '--account', account])).toMatchObject({ code: 0 });
  await two.product.send(
    ...pair.flatMap((account) => [
      ...[1, 2, 3].map((n) => event(account, n, { timestamp: 'soon' })),
      event(account, 4, { usage: -1 }),
    ]),
  );
  const corrected = ['--all', '--reason', 'invalid_timestamp', '--edit', `timestamp=${WINDOW.startTime}`];
  for (const account of pair) await operate(account, 'rejected', 'replay', ...corrected);
  await drained(two.product.queue);
  for (const account of pair) {
    expect(await two.ask(account)).toEqual({ status: 200, usage: 3, names: ['r1', 'r2', 'r3'] });
    await operate(account, 'rejected', 'discard', '--all', '--yes');
    const listed = await two.operate(['rejected', 'list', '--account', account, '--json']);
    expect(JSON.parse(listed.stdout)).toEqual([]);
  }
  const [first, second] = pair;
  await operate(second, 'erase', '--confirm', second);
  expect(await two.ask(first)).toMatchObject({ usage: 3 });
  await operate(first, 'erase', '--confirm', first);
  const left = 'SELECT event_id FROM usage_events WHERE account_id IN {pair: Array(String)}';
  expect(await select(two.product.warehouse, left, { pair })).toEqual([]);
});

it('two shards are refused when the cluster had other shards before: the rows of accounts are elsewhere then', async () => {
  const [, second] = two.newAccounts();
  const first = two.product.shards.all[0];
  if (!first) throw new Error('there are two shards');
  await execute(first, 'INSERT INTO usage_daily (account_id) VALUES ({account: String})', { account: second });
  const refused = {
    code: 1,
    stderr: expect.stringContaining(`usage of account ${second}, which is on another shard`),
  };
  expect(await two.operate(['audit'])).toMatchObject(refused);
  await execute(first, 'ALTER TABLE usage_daily DELETE WHERE account_id = {account: String}', { account: second });
  expect(await two.operate(['audit'])).toMatchObject({
    code: 0,
    stdout: expect.stringContaining('Every rollup row agrees'),
  });
});

it('two shards are refused when one was restored or is new: its watermarks are not those of the other', async () => {
  const [first] = two.product.shards.all;
  if (!first) throw new Error('there are two shards');
  await execute(first, "INSERT INTO rollup_watermarks (grain, sealed_until) VALUES ('daily', '2100-01-01')");
  expect(await two.operate(['audit'])).toMatchObject({
    code: 1,
    stderr: expect.stringContaining('different watermarks'),
  });
  for (const shard of two.product.shards.all) await execute(shard, 'TRUNCATE TABLE rollup_watermarks');
  expect(await two.operate(['audit'])).toMatchObject({ code: 0 });
});

it('two shards give no user less than it needs', async () => {
  for (const service of two.services) expect(service.log()).not.toMatch(/ACCESS_DENIED|NOPERM/);
  expect(await two.product.redis.acl('LOG')).toEqual([]);
});

it('two shards ask the shard of an account alone', async () => {
  const [first] = two.newAccounts();
  await two.product.send(event(first, 1), event(first, 2), event(first, 3));
  const [since] = await select<{ now: string }>(two.product.warehouse, 'SELECT toString(now64(6)) AS now');
  await two.ask(first);
  const requested = two.product.shards.all.map(async (shard) => {
    await execute(shard, 'SYSTEM FLUSH LOGS');
    const [row] = await select<{ statements: number }>(
      shard,
      `SELECT toUInt32(count()) AS statements FROM system.query_log
       WHERE type = 'QueryFinish' AND event_time_microseconds >= {since: String}
         AND has(databases, currentDatabase()) AND initial_user = {user: String}
         -- Of these each shard has a copy
         AND NOT arrayExists(name -> match(name, 'rollup_watermarks|retention_bounds'), tables)
         AND (startsWith(http_user_agent, 'meterline-query') OR NOT is_initial_query)`,
      { since: since?.now ?? '', user: 'query' },
    );
    return row?.statements;
  });
  const [own, other] = await Promise.all(requested);
  expect(own).toBeGreaterThan(4);
  expect(other).toBe(0);
});

it('two shards lose nobody but the accounts of a shard that hangs', async () => {
  const [first] = two.newAccounts();
  await two.product.send(event(first, 1), event(first, 2));
  const [api, key] = [await two.startQuery(), await two.product.key(first)];
  const status = async (path: string, window: object) => {
    const url = `${api.url}/v0/accounts/${first}/${path}?${new URLSearchParams({ ...window })}`;
    return (await fetch(url, { headers: { authorization: `Bearer ${key}`, connection: 'close' } })).status;
  };
  await whileFrozen(two.stack.shards[1]?.pid ?? 0, async () => {
    // Each window is another query, so that none is answered from memory.
    const windows = [1, 2, 3, 4].map((n) => ({ ...WINDOW, startTime: `2026-01-01T00:00:00.00${n}Z` }));
    for (const window of windows) expect(await status('metrics', window)).toBe(200);
    expect(await status('events', WINDOW)).toBe(200);
  });
  expect(await api.stop()).toBe(0);
});

it('two shards answer about the accounts of the other when a shard dies; jobs wait, and all is there when it is back', async () => {
  const [first, second] = two.newAccounts();
  await two.product.send(event(first, 1), event(second, 1));
  const dead = two.stack.shards[1];
  if (!dead) throw new Error('there are two shards');
  await dead.kill();

  const id = await enqueueData(two.product.queue, { events: [event(first, 2), event(second, 2)] });
  for (let n = 0; n < 5; n += 1) {
    expect(await two.ask(first)).toMatchObject({ status: 200, usage: expect.any(Number) });
    expect(await two.ask(second)).toMatchObject({ status: 503 });
  }
  expect(await (await two.product.queue.getJob(id))?.isCompleted()).toBe(false);

  const again = await dead.restart();
  try {
    await drained(two.product.queue);
    expect(await two.ask(second)).toEqual({ status: 200, usage: 2, names: ['r1', 'r2'] });
    expect(await two.ask(first)).toEqual({ status: 200, usage: 2, names: ['r1', 'r2'] });
  } finally {
    await again.stop();
  }
});
