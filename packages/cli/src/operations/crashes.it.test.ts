/** Erases accounts and re-prices events on a real ClickHouse and Redis, also when the process dies half way. */
import { once } from 'node:events';
import { request } from 'node:http';
import { afterAll, beforeAll, expect, it } from '@jest/globals';
import { DEFAULT_PRICE_BOOK_FILE, END_OF_TIME, PriceBook } from '@meterline/catalog';
import { ApiKeyStore } from '@meterline/service/access';
import { AlertStore } from '@meterline/service/alerts';
import { ViewStore } from '@meterline/service/views';
import {
  insertUsageEvents,
  oneServer,
  readAccountPartitions,
  readMarkedHours,
  readMetrics,
  sealNext,
  type Warehouse,
} from '@meterline/warehouse';
import { Redis } from 'ioredis';
import { ALERT_SETTINGS } from '../../../../test/harness/alerts.js';
import { event } from '../../../../test/harness/events.js';
import { recomputeAll, select, storeEvents, testRedisUrl, uniquePrefix } from '../../../../test/harness/stack.js';
import { testDatabase } from '../../../../test/harness/test-database.js';
import { until } from '../../../../test/harness/waiting.js';
import { auditRollups } from './audit.js';
import { eraseAccount, findAccount } from './erasure.js';
import { CostChanges, reprice, repricedEvent } from './repricing.js';

const { signal } = new AbortController();

const database = testDatabase();
let redis: Redis;
beforeAll(async () => {
  redis = new Redis(testRedisUrl(), { maxRetriesPerRequest: null });
});
afterAll(async () => {
  redis.disconnect();
});

/** Creates an account with events in two months, one of them sealed, a key, an alert and a view. */
async function optionsOfAccount() {
  const account = uniquePrefix();
  await insertUsageEvents(database.warehouse, [
    event({ accountId: account }),
    event({ accountId: account, at: '2025-11-01T00:00:00Z' }),
  ]);
  while (await sealNext(database.shards.all, Date.UTC(2025, 9, 2)));
  const keys = new ApiKeyStore(redis);
  const { key } = await keys.create({ account, role: 'admin', clientId: 'client' }, new Date());
  await new AlertStore(redis).create(account, ALERT_SETTINGS, new Date());
  await new ViewStore(redis).save(account, 'view', '', new Date());
  const withRedis = <T>(work: (connection: Redis) => Promise<T>) => work(redis);
  return { options: { shards: database.shards, withRedis, account }, keys, key };
}

it('an erasure that dies after any step leaves no valid key, and the next erasure finishes it', async () => {
  for (let dieAt = 0; ; dieAt += 1) {
    const { options, keys, key } = await optionsOfAccount();
    let steps = 0;
    const die = () => {
      if (steps === dieAt) throw new Error('died');
      steps += 1;
    };
    const first = await eraseAccount(options, await findAccount(options), signal, die).catch((error: Error) => error);
    expect(await keys.authenticate(key, new Date())).toBeUndefined();
    if (!(first instanceof Error)) {
      // The command went through: every point where it could die was tried.
      expect(first).toMatchObject({ usageEventRows: 2, apiKeys: 1, alerts: 1, views: 1, rowsLeft: 0 });
      expect(dieAt).toBeGreaterThan(2);
      return;
    }
    expect(first.message).toBe('died');
    const second = await eraseAccount(options, await findAccount(options), signal, () => undefined);
    expect(second).toMatchObject({ apiKeys: 0, rowsLeft: 0 });
    expect((await findAccount(options)).holdings).toEqual({
      usageEventRows: 0,
      rejectedEventRows: 0,
      apiKeys: 0,
      alerts: 0,
      views: 0,
    });
  }
});

/** Sends an insert without its end: it runs in the server until it is ended here. @returns ends it, and resolves when its rows are stored */
async function openInsert(table: string, account: string): Promise<() => Promise<unknown>> {
  const { url, user, password, database: name } = database.options;
  const query = `INSERT INTO ${table} (account_id) FORMAT TSV`;
  const search = new URLSearchParams({ database: name, query });
  const insert = request(`${url}/?${search}`, { method: 'POST', auth: `${user}:${password}` });
  const response = once(insert, 'response');
  // The server begins with a statement once it has so much of its text, max_query_size.
  insert.write(`${account}\n`.repeat(Math.ceil(300_000 / account.length)));
  await until(`the insert into ${table} runs`, async () => {
    const running = 'SELECT query_id FROM system.processes WHERE startsWith(query, {query: String})';
    return (await select(database.warehouse, running, { query })).length > 0;
  });
  return () => {
    insert.end();
    return response;
  };
}

it('an erasure also removes rows that were computed from the events while they were erased', async () => {
  const { options } = await optionsOfAccount();
  const { account, shards } = options;
  const inserts = await Promise.all(['usage_daily', 'result_pages'].map((table) => openInsert(table, account)));
  let reportWaiting = () => {};
  const isWaiting = new Promise<void>((resolve) => {
    reportWaiting = resolve;
  });
  const observed: Warehouse = {
    ...database.warehouse,
    read: async (statement, row) => {
      const rows = await database.warehouse.read(statement, row);
      if (statement.name === 'read_recomputations') reportWaiting();
      return rows;
    },
  };
  const own = { ...options, shards: oneServer(observed) };
  const erased = eraseAccount(own, await findAccount(own), signal, () => undefined);
  await Promise.race([isWaiting, erased]);
  await Promise.all(inserts.map((end) => end()));
  expect(await erased).toMatchObject({ rowsLeft: 0 });
  expect(await readAccountPartitions(shards.all, account)).toEqual([]);
});

it('an event that arrives during an erasure counts, even if its rollups and dirty mark were erased', async () => {
  const { options } = await optionsOfAccount();
  const found = await findAccount(options);
  // As if the events had arrived just after their months had been erased.
  const partitions = found.partitions.filter(({ table }) => table !== 'usage_events');
  const erased = await eraseAccount(options, { ...found, partitions }, signal, () => undefined);
  expect(erased.rowsLeft).toBe(2);
  const window = { startTime: 0, endTime: Date.UTC(2026, 0) };
  const marked = await readMarkedHours(database.warehouse, [options.account], window);
  expect(marked).toEqual([{ accountId: options.account, bucket: expect.any(Number) }]);
  expect(marked[0]?.bucket).toBeLessThan(Date.UTC(2025, 9, 2));
});

it('an interruption ends an erasure between two months and reports how much was erased', async () => {
  const { options } = await optionsOfAccount();
  const interruption = new AbortController();
  const onProgress = (done: number) => {
    if (done === 1) interruption.abort();
  };
  const erased = await eraseAccount(options, await findAccount(options), interruption.signal, onProgress);
  expect(erased).toMatchObject({ apiKeys: 1, rowsLeft: undefined });
  expect(erased.usageEventRows).toBeLessThan(2);
});

const WINDOW = { startTime: Date.UTC(2025, 9, 1), endTime: Date.UTC(2025, 9, 3) };
const EVENTS = 4;
const STEP = 2;

/** A price book of one dollar for each unit of everything. */
const BOOK = new PriceBook({
  ...DEFAULT_PRICE_BOOK_FILE,
  version: 1,
  prices: DEFAULT_PRICE_BOOK_FILE.prices.map((price) => ({ ...price, amount: '1', per: '1' })),
});

async function costOfAll(accountId: string): Promise<string> {
  const accounts = [accountId];
  const query = { accounts, window: WINDOW, resolution: 'daily', groupBy: [], filters: {}, limit: 1 } as const;
  return (await readMetrics(database.warehouse, query)).totals.cost;
}

function audited(accountId: string) {
  return auditRollups({
    ...{ shards: database.shards, accountId, signal, repair: false, recheckMs: 1 },
    window: { startTime: 0, endTime: END_OF_TIME },
    onProgress: () => undefined,
  });
}

/** @returns what has changed */
async function repriced(accountId: string, onProgress: () => void = () => undefined) {
  const changes = new CostChanges();
  const { shards } = database;
  const scope = { accountId, window: WINDOW };
  await reprice({ shards, scope, book: BOOK, dryRun: false, step: STEP, signal, onProgress }, changes);
  return changes.total();
}

it('a re-pricing that dies after any step is finished by the next re-pricing, including all rollup rows', async () => {
  for (let dieAt = 0; ; dieAt += 1) {
    const accountId = uniquePrefix();
    const at = (n: number) => `2025-10-01T0${n}:00:00Z`;
    const events = Array.from({ length: EVENTS }, (_, n) => event({ accountId, at: at(n), usage: '2', cost: '7' }));
    await storeEvents(database.warehouse, events);
    await recomputeAll(database.warehouse);
    while (await sealNext(database.shards.all, WINDOW.endTime));
    let steps = 0;
    const first = await repriced(accountId, () => {
      if (steps === dieAt) throw new Error('died');
      steps += 1;
    }).catch((error: Error) => error);
    const second = await repriced(accountId);
    const left = first instanceof Error ? Math.max(0, EVENTS - STEP * dieAt) : 0;
    expect(second).toMatchObject({ events: EVENTS, changed: left, after: '8' });
    expect(await costOfAll(accountId)).toBe('8');
    expect(await audited(accountId)).toMatchObject({ days: 1, differences: [] });
    // The correction did not begin, took two steps, and then one that found no more.
    if (!(first instanceof Error)) return void expect(dieAt).toBe(2 + EVENTS / STEP);
  }
});

it('a re-pricing that dies before it marks hours is found by an audit, and the next re-pricing keeps the new prices', async () => {
  const accountId = uniquePrefix();
  const events = Array.from({ length: EVENTS }, () => event({ accountId, usage: '2', cost: '7' }));
  await storeEvents(database.warehouse, events);
  while (await sealNext(database.shards.all, WINDOW.endTime));
  await recomputeAll(database.warehouse);
  const step = events.slice(0, STEP).flatMap((one) => repricedEvent(one, BOOK) ?? []);
  await insertUsageEvents(database.warehouse, step);
  expect((await audited(accountId)).differences).not.toEqual([]);
  expect(await costOfAll(accountId)).toBe('18');
  await repriced(accountId);
  expect(await costOfAll(accountId)).toBe('8');
  await recomputeAll(database.warehouse);
  expect((await audited(accountId)).differences).toEqual([]);
  expect(await costOfAll(accountId)).toBe('8');
});
