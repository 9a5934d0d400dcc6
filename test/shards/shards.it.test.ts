/**
 * Two shards, two ingest and two query processes: what is stored, sealed, corrected, refused, settled and erased is exact on
 * both, a question of one account is asked of its shard alone, and a shard that dies takes only its own accounts with it. The
 * query processes have one address of ClickHouse, which leads each request to the next of the two servers. Every process and
 * command is a user of its own, as with `npm start`.
 */
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it, jest } from '@jest/globals';
import { startClickHouse } from '@meterline/local-stack';
import { usageEvent } from '../harness/events.js';
import { freeze } from '../harness/faults.js';
import { itLong } from '../harness/long.js';
import { writePriceBook } from '../harness/price-book-file.js';
import { drained, enqueueData, until } from '../harness/queue.js';
import { execute, select } from '../harness/stack.js';
import { openTwoShards, type TwoShards, USD_PER_GBS, WINDOW } from './two-shards.js';

jest.setTimeout(600_000);

let two: TwoShards;

beforeAll(async () => {
  two = await openTwoShards();
});
afterAll(() => two.close());

const event = (account: string, n: number, changes: object = {}) =>
  usageEvent(n, { accountId: account, resourceName: `r${n}`, ...changes });

itLong('two shards keep the figures of a month whose events are dropped from both', async () => {
  const accounts = two.newAccounts();
  const at = { timestamp: '2025-11-05T10:10:00Z' };
  await two.product.send(...accounts.flatMap((account) => [event(account, 1, at), event(account, 2, at)]));
  const window = { startTime: '2025-11-01T00:00:00Z', endTime: '2025-12-01T00:00:00Z' };
  const figures = { status: 200, usage: 2, names: ['r1', 'r2'] };
  for (const account of accounts) expect(await two.ask(account, window)).toEqual(figures);
  await until('both shards are sealed', 30_000, async () => {
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
    await until('both processes know', 10_000, async () => (await two.ask(account, within)).status === 400);
    expect(await two.ask(account, window)).toEqual(figures);
  }
});

it('two shards answer exactly, page by page, before and after they are sealed, with late events, revisions and voids', async () => {
  const [first, second] = two.newAccounts();
  // One job for both.
  await two.product.send(...[first, second].flatMap((account) => [1, 2, 3, 4, 5].map((n) => event(account, n))));
  for (const account of [first, second]) {
    expect(await two.ask(account)).toEqual({ status: 200, usage: 5, names: ['r1', 'r2', 'r3', 'r4', 'r5'] });
  }
  await until('both are sealed', 30_000, async () => {
    const rows = await Promise.all(
      two.product.shards.all.map((shard) =>
        select<{ rollups: number }>(shard, 'SELECT toUInt32(count()) AS rollups FROM usage_daily'),
      ),
    );
    return rows.every(([row]) => (row?.rollups ?? 0) > 0);
  });
  await two.product.send(
    event(first, 6, { usage: 10 }),
    event(second, 1, { revision: 1, usage: 0.5 }),
    event(second, 2, { revision: 1, void: true }),
  );
  expect(await two.ask(first)).toMatchObject({ usage: 15, names: ['r1', 'r2', 'r3', 'r4', 'r5', 'r6'] });
  expect(await two.ask(second)).toMatchObject({ usage: 3.5, names: ['r1', 'r3', 'r4', 'r5'] });
  expect(await two.operate(['audit'])).toMatchObject({
    code: 0,
    stdout: expect.stringContaining('Every rollup row agrees'),
  });
});

itLong(
  'two shards re-price an account of each, go on where a killed one ended, and change nothing of another',
  async () => {
    const directory = await mkdtemp(join(tmpdir(), 'meterline-shards-'));
    const book = await writePriceBook(join(directory, 'twice.json'), 1, String(2 * USD_PER_GBS));
    const accounts = two.newAccounts();
    const count = 1_000;
    const numbers = Array.from({ length: count }, (_, n) => n);
    await two.product.send(
      ...accounts.flatMap((account) => numbers.map((n) => event(account, n, { resourceName: 'r' }))),
    );
    const costs = async () => [await two.ask(accounts[0]), await two.ask(accounts[1])].map(({ usage }) => usage);
    expect(await costs()).toEqual([count, count]);
    const twiceAsMuch: number[] = [];
    for (const account of accounts) {
      const args = ['reprice', '--account', account, '--from', WINDOW.startTime, '--to', WINDOW.endTime];
      const steps = ['--book', book, '--step', '25'];
      const killed = await two.operate([...args, ...steps], { interruptAt: '100 done', interruptWith: 'SIGKILL' });
      expect(killed).toMatchObject({ code: null, stdout: '' });
      const repriced = 'SELECT toUInt32(count()) AS events FROM usage_events FINAL WHERE price_revision > 0';
      const rows = two.product.shards.all.map((shard) => select<{ events: number }>(shard, repriced));
      const done = (await Promise.all(rows)).flat().map(({ events }) => events);
      const own = accounts.indexOf(account);
      expect(done[own]).toBeGreaterThanOrEqual(100);
      expect(done[own]).toBeLessThan(count);
      expect(done[1 - own]).toBe(twiceAsMuch.length * count);

      const { stdout } = await two.operate([...args, ...steps, '--json']);
      const { total } = JSON.parse(stdout);
      expect(total).toMatchObject({ events: count, changed: count - (done[own] ?? 0) });
      twiceAsMuch.push(2 * count);
      expect(await costs()).toEqual([...twiceAsMuch, count].slice(0, 2));
      expect(JSON.parse((await two.operate([...args, ...steps, '--json'])).stdout)).toMatchObject({
        total: { changed: 0 },
      });
    }
    expect(await two.operate(['audit'])).toMatchObject({
      code: 0,
      stdout: expect.stringContaining('Every rollup row agrees'),
    });
    await rm(directory, { recursive: true });
  },
);

it('two shards find rollup rows that differ, and repair them', async () => {
  const [, second] = two.newAccounts();
  await two.product.send(event(second, 1), event(second, 2));
  const day = "account_id = {account: String} AND bucket = '2026-01-01 00:00:00'";
  const rollups = () =>
    select(two.product.warehouse, `SELECT version FROM usage_daily FINAL WHERE ${day}`, { account: second });
  await until('its rollups are there', 30_000, async () => (await rollups()).length === 1);
  const remove = `ALTER TABLE usage_daily DELETE WHERE ${day}`;
  for (const shard of two.product.shards.all) await execute(shard, remove, { account: second });
  expect(await two.operate(['audit', '--account', second])).toMatchObject({ code: 1 });
  expect(await two.operate(['audit', '--account', second, '--repair'])).toMatchObject({ code: 0 });
  expect(await rollups()).toHaveLength(1);
  expect(await two.ask(second)).toMatchObject({ usage: 2 });
});

it('two shards keep what is refused, send it again and discard it', async () => {
  const [first, second] = two.newAccounts();
  await two.product.send(
    event(first, 1, { timestamp: 'soon' }),
    event(second, 1, { usage: -1 }),
    event(second, 2, { usage: -1 }),
  );
  const listed = async (account: string) =>
    JSON.parse((await two.operate(['rejected', 'list', '--account', account, '--json'])).stdout);
  const [ofFirst, ofSecond] = [await listed(first), await listed(second)];
  expect([ofFirst.length, ofSecond.length]).toEqual([1, 2]);
  const args = ['--account', second, '--all', '--yes'];
  expect(await two.operate(['rejected', 'discard', ...args])).toMatchObject({ code: 0 });
  expect(await listed(second)).toEqual([]);
  const edit = ['--edit', `timestamp=${WINDOW.startTime}`];
  expect(await two.operate(['rejected', 'replay', '--account', first, '--all', ...edit])).toMatchObject({ code: 0 });
  await drained(two.product.queue);
  expect(await listed(first)).toEqual([]);
  expect(await two.ask(first)).toMatchObject({ usage: 1, names: ['r1'] });
});

it('two shards erase an account, and nothing of another', async () => {
  const [first, second] = two.newAccounts();
  await two.product.send(
    ...[first, second].flatMap((account) => [event(account, 1), event(account, 2, { usage: -1 })]),
  );
  const erased = await two.operate(['erase', '--account', second, '--confirm', second]);
  expect(erased.stdout).toContain('Erased 1 stored event, 1 rejected event');
  const count = 'SELECT toUInt32(count()) AS events FROM usage_events WHERE account_id = {account: String}';
  expect(await select(two.product.warehouse, count, { account: second })).toEqual([{ events: 0 }]);
  expect(await two.ask(first)).toMatchObject({ usage: 1 });
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
  const asked = two.product.shards.all.map(async (shard) => {
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
  const [own, other] = await Promise.all(asked);
  expect(own).toBeGreaterThan(4);
  expect(other).toBe(0);
});

itLong('two shards lose nobody but the accounts of a shard that hangs', async () => {
  const [first] = two.newAccounts();
  await two.product.send(event(first, 1), event(first, 2));
  const [api, key] = [await two.startQuery(), await two.product.key(first)];
  const status = async (path: string, window: object) => {
    const url = `${api.url}/v0/accounts/${first}/${path}?${new URLSearchParams({ ...window })}`;
    return (await fetch(url, { headers: { authorization: `Bearer ${key}`, connection: 'close' } })).status;
  };
  const pid = two.stack.shards[1]?.pid ?? 0;
  await freeze(pid);
  try {
    // Each another question, so that none is answered from memory.
    const windows = [1, 2, 3, 4].map((n) => ({ ...WINDOW, startTime: `2026-01-01T00:00:00.00${n}Z` }));
    for (const window of windows) expect(await status('metrics', window)).toBe(200);
    expect(await status('events', WINDOW)).toBe(200);
  } finally {
    process.kill(pid, 'SIGCONT');
  }
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

  const { shard, httpPort } = dead;
  const again = await startClickHouse({ dataDir: two.stack.directory, shard, httpPort });
  try {
    await drained(two.product.queue);
    expect(await two.ask(second)).toEqual({ status: 200, usage: 2, names: ['r1', 'r2'] });
    expect(await two.ask(first)).toEqual({ status: 200, usage: 2, names: ['r1', 'r2'] });
  } finally {
    await again.stop();
  }
});
