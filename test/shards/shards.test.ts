/**
 * Two shards, two ingest and two query processes: what is stored, sealed, corrected, refused, settled and erased is exact on
 * both, a question of one account is asked of its shard alone, and a shard that dies takes only its own accounts with it. The
 * query processes have one address of ClickHouse, which leads each request to the next of the two servers. Every process and command
 * is a user of its own, as with `npm start`.
 */
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it, jest } from '@jest/globals';
import { startClickHouse } from '@meterline/local-stack';
import { drained, enqueueData, until, usageEvent } from '../e2e/pipeline.js';
import { freeze } from '../freeze.js';
import { writePriceBook } from '../price-book-file.js';
import { execute, select } from '../stack.js';
import { newAccounts, openTwoShards, type TwoShards, USD_PER_GBS, WINDOW } from './two-shards.js';

jest.setTimeout(600_000);

/** `npm test` re-prices on one server. */
const long = process.env.METERLINE_TEST_SHORT ? it.skip : it;

let two: TwoShards;

beforeAll(async () => {
  two = await openTwoShards();
});
afterAll(() => two.close());

const event = (account: string, n: number, changes: object = {}) =>
  usageEvent(n, { accountId: account, resourceName: `r${n}`, ...changes });

describe('two shards', () => {
  long('keep the figures of a month whose events are dropped from both', async () => {
    const accounts = newAccounts();
    const at = { timestamp: '2025-11-05T10:10:00Z' };
    await two.send(...accounts.flatMap((account) => [event(account, 1, at), event(account, 2, at)]));
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
    for (const shard of two.pipeline.shards.all)
      expect(await select(shard, 'SELECT event_id FROM usage_events')).toEqual([]);
    for (const account of accounts) {
      const within = { ...window, startTime: '2025-11-05T10:00:00.001Z' };
      await until('both processes know', 10_000, async () => (await two.ask(account, within)).status === 400);
      expect(await two.ask(account, window)).toEqual(figures);
    }
  });

  it('answer exactly, page by page, before and after they are sealed, with late events, revisions and voids', async () => {
    const [first, second] = newAccounts();
    // One job for both.
    await two.send(...[first, second].flatMap((account) => [1, 2, 3, 4, 5].map((n) => event(account, n))));
    for (const account of [first, second]) {
      expect(await two.ask(account)).toEqual({ status: 200, usage: 5, names: ['r1', 'r2', 'r3', 'r4', 'r5'] });
    }
    await until('both are sealed', 30_000, async () => {
      const rows = await Promise.all(
        two.pipeline.shards.all.map((shard) =>
          select<{ cells: number }>(shard, 'SELECT toUInt32(count()) AS cells FROM usage_daily'),
        ),
      );
      return rows.every(([row]) => (row?.cells ?? 0) > 0);
    });
    await two.send(
      event(first, 6, { usage: 10 }),
      event(second, 1, { revision: 1, usage: 0.5 }),
      event(second, 2, { revision: 1, void: true }),
    );
    expect(await two.ask(first)).toMatchObject({ usage: 15, names: ['r1', 'r2', 'r3', 'r4', 'r5', 'r6'] });
    expect(await two.ask(second)).toMatchObject({ usage: 3.5, names: ['r1', 'r3', 'r4', 'r5'] });
    expect(await two.operate(['audit'])).toMatchObject({
      code: 0,
      stdout: expect.stringContaining('Every cell agrees'),
    });
  });

  long('re-price an account of each, go on where a killed one ended, and change nothing of another', async () => {
    const directory = await mkdtemp(join(tmpdir(), 'meterline-shards-'));
    const book = await writePriceBook(join(directory, 'twice.json'), 1, String(2 * USD_PER_GBS));
    const accounts = newAccounts();
    const count = 1_000;
    const numbers = Array.from({ length: count }, (_, n) => n);
    await two.send(...accounts.flatMap((account) => numbers.map((n) => event(account, n, { resourceName: 'r' }))));
    const costs = async () => [await two.ask(accounts[0]), await two.ask(accounts[1])].map(({ usage }) => usage);
    expect(await costs()).toEqual([count, count]);
    const twiceAsMuch: number[] = [];
    for (const account of accounts) {
      const args = ['reprice', '--account', account, '--from', WINDOW.startTime, '--to', WINDOW.endTime];
      const steps = ['--book', book, '--step', '25'];
      const killed = await two.operate([...args, ...steps], { interruptAt: '100 done', interruptWith: 'SIGKILL' });
      expect(killed).toMatchObject({ code: null, stdout: '' });
      const repriced = 'SELECT toUInt32(count()) AS events FROM usage_events FINAL WHERE price_revision > 0';
      const rows = two.pipeline.shards.all.map((shard) => select<{ events: number }>(shard, repriced));
      const done = (await Promise.all(rows)).flat().map(({ events }) => events);
      const own = two.pipeline.shards.indexOf(account);
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
      stdout: expect.stringContaining('Every cell agrees'),
    });
    await rm(directory, { recursive: true });
  });

  it('find cells that differ, and repair them', async () => {
    const [, second] = newAccounts();
    await two.send(event(second, 1), event(second, 2));
    const day = "account_id = {account: String} AND bucket = '2026-01-01 00:00:00'";
    const cells = () =>
      select(two.pipeline.shards.of(second), `SELECT version FROM usage_daily FINAL WHERE ${day}`, { account: second });
    await until('its cells are there', 30_000, async () => (await cells()).length === 1);
    const remove = `ALTER TABLE usage_daily DELETE WHERE ${day}`;
    await execute(two.pipeline.shards.of(second), remove, { account: second });
    expect(await two.operate(['audit', '--account', second])).toMatchObject({ code: 1 });
    expect(await two.operate(['audit', '--account', second, '--repair'])).toMatchObject({ code: 0 });
    expect(await cells()).toHaveLength(1);
    expect(await two.ask(second)).toMatchObject({ usage: 2 });
  });

  it('keep what is refused, send it again and discard it', async () => {
    const [first, second] = newAccounts();
    await two.send(
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
    await drained(two.pipeline.queue);
    expect(await listed(first)).toEqual([]);
    expect(await two.ask(first)).toMatchObject({ usage: 1, names: ['r1'] });
  });

  it('erase an account, and nothing of another', async () => {
    const [first, second] = newAccounts();
    await two.send(...[first, second].flatMap((account) => [event(account, 1), event(account, 2, { usage: -1 })]));
    const erased = await two.operate(['erase', '--account', second, '--confirm', second]);
    expect(erased.stdout).toContain('Erased 1 stored event, 1 refused event');
    const count = 'SELECT toUInt32(count()) AS events FROM usage_events WHERE account_id = {account: String}';
    expect(await select(two.pipeline.warehouse, count, { account: second })).toEqual([{ events: 0 }]);
    expect(await two.ask(first)).toMatchObject({ usage: 1 });
  });

  it('are refused when the cluster had other shards before: the rows of accounts are elsewhere then', async () => {
    const [, second] = newAccounts();
    const first = two.pipeline.shards.all[0];
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
      stdout: expect.stringContaining('Every cell agrees'),
    });
  });

  it('give no user less than it needs', async () => {
    for (const service of two.services) expect(service.log()).not.toMatch(/ACCESS_DENIED|NOPERM/);
    expect(await two.pipeline.redis.acl('LOG')).toEqual([]);
  });

  it('ask the shard of an account alone', async () => {
    const [first] = newAccounts();
    await two.send(event(first, 1), event(first, 2), event(first, 3));
    const [since] = await select<{ now: string }>(two.pipeline.warehouse, 'SELECT toString(now64(6)) AS now');
    await two.ask(first);
    const asked = two.pipeline.shards.all.map(async (shard) => {
      await execute(shard, 'SYSTEM FLUSH LOGS');
      const [row] = await select<{ statements: number }>(
        shard,
        `SELECT toUInt32(count()) AS statements FROM system.query_log
         WHERE type = 'QueryFinish' AND event_time_microseconds >= {since: String}
           AND has(databases, currentDatabase()) AND initial_user = {user: String}
           AND (http_user_agent = 'meterline-query' OR NOT is_initial_query)`,
        { since: since?.now ?? '', user: 'query' },
      );
      return row?.statements;
    });
    const [own, other] = await Promise.all(asked);
    expect(own).toBeGreaterThan(4);
    expect(other).toBe(0);
  });

  long('lose nobody but the accounts of a shard that hangs', async () => {
    const [first] = newAccounts();
    await two.send(event(first, 1), event(first, 2));
    const [api, key] = [await two.startQuery(), await two.createKey(first)];
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

  it('lose nobody but the accounts of a shard that dies, and have all of these when it is back', async () => {
    const [first, second] = newAccounts();
    await two.send(event(first, 1), event(second, 1));
    const dead = two.stack.shards[1];
    if (!dead) throw new Error('there are two shards');
    await dead.kill();

    await enqueueData(two.pipeline.queue, { events: [event(second, 2)] });
    for (let n = 2; n <= 6; n += 1) {
      const id = await enqueueData(two.pipeline.queue, { events: [event(first, n)] });
      await until('a job of the other shard is acknowledged', 30_000, async () => {
        const job = await two.pipeline.queue.getJob(id);
        return job === undefined || (await job.isCompleted());
      });
      // What counts at once for one account cannot for the other.
      expect(await two.ask(first)).toMatchObject({ status: 200, usage: n });
      expect(await two.ask(second)).toMatchObject({ status: 503 });
    }

    const { shard, httpPort } = dead;
    const again = await startClickHouse({ dataDir: two.stack.directory, shard, httpPort });
    try {
      await drained(two.pipeline.queue);
      expect(await two.ask(second)).toEqual({ status: 200, usage: 2, names: ['r1', 'r2'] });
      expect(await two.ask(first)).toMatchObject({ usage: 6 });
    } finally {
      await again.stop();
    }
  });
});
