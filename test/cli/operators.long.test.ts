/** meterline reprice and erase between producers that go on sending. What dies on the way: beside the operations. */
import { afterAll, beforeAll, beforeEach, expect, it } from '@jest/globals';
import { QUEUE_NAME, type UsageEventInput } from '@meterline/catalog';
import { hostsOf } from '@meterline/warehouse';
import { Queue } from 'bullmq';
import { TcpProxy } from '../faults/tcp-proxy.js';
import { usageEvent, writePriceBook } from '../harness/events.js';
import { type Product, startProduct } from '../harness/product.js';
import { drained, enqueueData, stored } from '../harness/queue.js';
import { killServices } from '../harness/services.js';
import { execute, select, testRedisUrl, uniquePrefix } from '../harness/stack.js';
import { testFolder } from '../harness/test-folder.js';
import { type MeterlineOptions, runCommand } from './run-command.js';

const SANDBOX = 'sandbox_compute_runtime_gbs';
const WINDOW = ['--from', '2026-01-01T00:00:00Z', '--to', '2026-01-02T00:00:00Z'];

const folder = testFolder();
/** The built-in book, at twice the price of a sandbox's compute, as version 1. */
let twice: string;
let product: Product;
/** Leads to a worker that has the new book; the product's own queue to one that has the built-in book. */
let newPrices: Queue;

beforeAll(async () => {
  twice = await bookFile('twice.json', 1, '0.000023');
  product = await startProduct();
  const prefix = uniquePrefix();
  newPrices = new Queue(QUEUE_NAME, { connection: { url: testRedisUrl(), maxRetriesPerRequest: null }, prefix });
  await product.startIngest();
  await product.startIngest({ QUEUE_PREFIX: prefix, PRICE_BOOK: twice });
});
afterAll(async () => {
  await killServices();
  await newPrices.obliterate({ force: true });
  await newPrices.close();
  await product.close();
});

let accountId: string;
beforeEach(() => {
  accountId = uniquePrefix();
});

/** Event number n of the account that only this test uses. */
const event = (n: number, changes: Partial<UsageEventInput> = {}) => usageEvent(n, { accountId, ...changes });
const events = (count: number) => Array.from({ length: count }, (_, n) => event(n));

const bookFile = (name: string, ...prices: [version: number, amount: string, effectiveFrom?: string]) =>
  writePriceBook(folder(name), ...prices);

/** A command about the test's account. */
function run(command: string, args: readonly string[], options: MeterlineOptions = {}) {
  return runCommand([command, '--account', accountId, ...args], {
    ...options,
    env: { ...product.env, ...options.env },
  });
}

/** On 1 January 2026, unless the arguments say otherwise. */
const reprice = (args: readonly string[], options?: MeterlineOptions) => run('reprice', [...WINDOW, ...args], options);

/** Sends the events and waits until they are stored, with the built-in prices. */
async function ingest(batch: readonly UsageEventInput[]): Promise<void> {
  await enqueueData(product.queue, { events: batch });
  await drained(product.queue);
}

/** What readers see of the account. */
async function sums() {
  const query = `SELECT toUInt32(count()) AS events, toString(sum(usage)) AS usage, toString(sum(cost)) AS cost,
                   toUInt32(countIf(price_revision > 0)) AS repriced
            FROM usage_events FINAL WHERE account_id = {accountId: String} AND NOT voided`;
  type Sums = { readonly events: number; readonly usage: string; readonly cost: string; readonly repriced: number };
  return (await select<Sums>(product.warehouse, query, { accountId }))[0];
}

async function isRegistered(version: number): Promise<boolean> {
  const query = 'SELECT 1 FROM price_books WHERE version = {version: UInt16}';
  return (await select(product.warehouse, query, { version })).length > 0;
}

it('reprice shows with --dry-run what would change, writes nothing, and then changes just that', async () => {
  const job = { resourceType: 'job', billingDimension: 'job_compute_runtime_gbs' } as const;
  const voided = event(3, { void: true });
  await ingest([event(0), event(1, { usage: '0.333333333' }), event(2, job), voided]);
  const before = await sums();

  const other = await bookFile('other.json', 3, '0.000023');
  const preview = await reprice(['--book', other, '--dry-run', '--json']);
  const dimensions = [
    { billingDimension: SANDBOX, events: 2, changed: 2, before: '0.000015333333', after: '0.000030666667' },
    { billingDimension: 'job_compute_runtime_gbs', events: 1, changed: 0, before: '0.000006', after: '0.000006' },
  ];
  const result = {
    account: accountId,
    from: '2026-01-01T00:00:00Z',
    to: '2026-01-02T00:00:00Z',
    priceBook: 3,
    dimensions,
    total: { events: 3, changed: 2, before: '0.000021333333', after: '0.000036666667', difference: '0.000015333334' },
  };
  expect(JSON.parse(preview.stdout)).toMatchObject({ ...result, dryRun: true });
  expect(await sums()).toEqual(before);
  expect(await isRegistered(3)).toBe(false);

  const { code, stdout } = await reprice(['--book', other, '--json']);
  expect({ code, result: JSON.parse(stdout) }).toMatchObject({ code: 0, result });
  expect(await sums()).toEqual({ events: 3, usage: '2.333333333', cost: '0.000036666667', repriced: 2 });
  expect(await isRegistered(3)).toBe(true);
});

it('reprice prints a table for people and says where the window begins and ends', async () => {
  const at = (timestamp: string, n: number) => event(n, { timestamp });
  await ingest([
    at('2025-12-31T23:59:59.999Z', 1),
    at('2026-01-01T00:00:00Z', 2),
    at('2026-01-01T23:59:59.999Z', 3),
    at('2026-01-02T00:00:00Z', 4),
  ]);
  const { code, stdout } = await reprice([], { env: { PRICE_BOOK: twice } });
  expect({ code, stdout }).toEqual({
    code: 0,
    stdout: [
      'DIMENSION                    EVENTS  CHANGED  BEFORE (USD)  AFTER (USD)  DIFFERENCE',
      'sandbox_compute_runtime_gbs       2        2      0.000023     0.000046    0.000023',
      'total                             2        2      0.000023     0.000046    0.000023',
      '',
      'Changed 2 of 2 events to the prices of book 1; the others had them already.',
      '',
    ].join('\n'),
  });
});

it('reprice without a book is refused where events have prices of their own', async () => {
  const { code, stderr } = await reprice([]);
  expect([code, stderr]).toEqual([2, expect.stringContaining('or use --book built-in')]);
  expect((await reprice(['--book', 'built-in', '--dry-run'])).code).toBe(0);
});

it('reprice and workers with the new book give every event the new price, whatever arrives meanwhile', async () => {
  await ingest(events(2_000));
  const running = reprice(['--book', twice, '--step', '50']);
  for (let start = 0; start < 2_000; start += 100) {
    const revised = Array.from({ length: 10 }, (_, n) => event(start + n, { revision: 1, usage: 3 }));
    await enqueueData(newPrices, { events: [...revised, event(2_000 + start)] });
  }
  await drained(newPrices);
  expect(await running).toMatchObject({ code: 0 });
  // 1,800 events as they were, 200 revised, 20 new ones
  expect(await sums()).toMatchObject({ events: 2_020, usage: '2420', cost: '0.05566' });
});

it('reprice says that it can go on when ClickHouse goes away while it runs', async () => {
  await ingest(events(1_000));
  const urls = hostsOf(product.env['CLICKHOUSE_URL'] ?? '');
  // In front of every host: one that refuses is passed over.
  const proxies = await Promise.all(urls.map((url) => TcpProxy.open(Number(new URL(url).port))));
  const refuse = async () => {
    for (const proxy of proxies) proxy.treat({ kind: 'refuse' });
    return '';
  };
  const ended = await reprice(['--book', twice, '--step', '25'], {
    env: { CLICKHOUSE_URL: proxies.map(({ port }) => `http://127.0.0.1:${port}`).join(',') },
    stdin: { at: '100 done', response: refuse },
  });
  await Promise.all(proxies.map((proxy) => proxy.close()));
  expect(ended).toMatchObject({ code: 1, stdout: '' });
  expect(ended.stderr).toContain(
    'Stopped before the end. Run the same command again to finish; no event is re-priced twice.',
  );
  expect(ended.stderr).toContain('cannot reach ClickHouse');
  expect(await reprice(['--book', twice])).toMatchObject({ code: 0 });
  expect(await sums()).toMatchObject({ events: 1_000, repriced: 1_000 });
});

it.each([
  ['of a dry run', ['--dry-run'], 'interrupted; nothing was changed'],
  ['between two steps', [], 'interrupted. Run the same command again to finish; no event is re-priced twice.'],
])('reprice stops at Ctrl-C %s and says what is left', async (_when, args, words) => {
  await ingest(events(1_000));
  const ended = await reprice(['--book', twice, '--step', '25', ...args], { interruptAt: '100 done' });
  expect(ended).toMatchObject({ code: 1, stderr: expect.stringContaining(words) });
  expect((await sums())?.repriced).toBeLessThan(1_000);
});

it('reprice writes nothing when an event is older than its first price, names the event, and takes the book once it is fixed', async () => {
  await ingest([event(0), event(3_600)]);
  const late = await bookFile('late.json', 2, '1', '2026-01-01T01:00:00Z');
  const ended = await reprice(['--book', late]);
  expect(ended).toMatchObject({ code: 1, stdout: '' });
  expect(ended.stderr).toContain(`no price for ${SANDBOX} at 2026-01-01T00:00:00Z, the time of event 0190c5e4-`);
  expect(await sums()).toMatchObject({ repriced: 0 });
  // The version is still free for the book that was fixed.
  expect(await reprice(['--book', await bookFile('fixed.json', 2, '1')])).toMatchObject({ code: 0 });
  expect(await sums()).toMatchObject({ repriced: 2, cost: '2' });
});

it('reprice says that there are no events, and uses up no version for them', async () => {
  expect(await reprice(['--book', await bookFile('unused.json', 5, '1')])).toMatchObject({
    code: 0,
    stdout: `Account ${accountId} has no events in this window.\n`,
  });
  expect(await isRegistered(5)).toBe(false);
});

it('reprice refuses a book whose version has other prices, also with --dry-run', async () => {
  await ingest([event(0)]);
  const conflict = await bookFile('conflict.json', 0, '5');
  for (const dryRun of [[], ['--dry-run']]) {
    expect(await reprice(['--book', conflict, ...dryRun])).toEqual({
      code: 1,
      stdout: '',
      stderr:
        'meterline: price book version 0 is already in use with other prices; raise "version" in the price book\n',
    });
  }
  expect(await sums()).toMatchObject({ repriced: 0 });
});

async function rejections(account: string): Promise<number> {
  const query =
    'SELECT toUInt32(count()) AS rejections FROM rejected_events FINAL WHERE account_id = {account: String}';
  return (await select<{ rejections: number }>(product.warehouse, query, { account }))[0]?.rejections ?? -1;
}

const ERASED = '2 stored events, 1 rejected event, 1 API key, 0 alerts, 0 saved views.';
const erase = (args: readonly string[], options?: MeterlineOptions) => run('erase', args, options);

/** Events in two months, a rejected one and a key of each account. @returns the keys */
async function fill(...accounts: readonly string[]): Promise<string[]> {
  const events = accounts.flatMap((account) => [
    usageEvent(1, { accountId: account }),
    usageEvent(2, { accountId: account, timestamp: '2026-03-01T00:00:00Z' }),
    usageEvent(3, { accountId: account, usage: -1 }),
  ]);
  await product.send(...events);
  return Promise.all(accounts.map((account) => product.key(account)));
}

it('erase leaves nothing of an account whose name was typed, and everything of its neighbour', async () => {
  const neighbour = `${accountId}-2`;
  const [key = '', otherKey = ''] = await fill(accountId, neighbour);
  for (const stdin of ['', 'yes\n', `${neighbour}\n`]) {
    const stderr = expect.stringContaining('not confirmed; nothing was changed');
    expect(await erase([], { stdin })).toMatchObject({ code: 1, stdout: '', stderr });
  }
  expect(await stored(product.warehouse, accountId)).toMatchObject({ events: 2 });
  expect(await product.keys.authenticate(key, new Date())).toBeDefined();

  const erased = await erase([], { stdin: `${accountId}\n` });
  expect(erased).toMatchObject({ code: 0, stdout: `Erased ${ERASED}\n` });
  expect(erased.stderr).toContain(`Account ${accountId} has ${ERASED}`);
  expect(await stored(product.warehouse, accountId)).toMatchObject({ events: 0 });
  expect(await rejections(accountId)).toBe(0);
  expect(await product.keys.authenticate(key, new Date())).toBeUndefined();

  expect(await stored(product.warehouse, neighbour)).toMatchObject({ events: 2 });
  expect(await rejections(neighbour)).toBe(1);
  expect(await product.keys.authenticate(otherKey, new Date())).toBeDefined();

  // Results about several accounts are erased, too, and are nobody's.
  await execute(product.warehouse, "INSERT INTO result_pages (account_id) VALUES ('\\0several')");
  const again = await erase(['--confirm', accountId, '--json']);
  expect(again).toMatchObject({ code: 1, stderr: expect.stringContaining(`no data of account ${accountId} was`) });
  const nothing = { usageEventRows: 0, rejectedEventRows: 0, apiKeys: 0, alerts: 0, views: 0 };
  expect(JSON.parse(again.stdout)).toEqual({ account: accountId, ...nothing });
  // What was erased counts when it is sent again.
  await product.send(event(1), event(4));
  expect(await stored(product.warehouse, accountId)).toEqual({ events: 2, usage: 2 });
});

it('erase says so when rows have been stored meanwhile, and erases them when it runs again', async () => {
  await fill(accountId);
  const response = async () => {
    await product.send(event(5, { timestamp: '2026-04-01T00:00:00Z' }));
    return `${accountId}\n`;
  };
  expect(await erase([], { stdin: { at: 'Type the account ID', response } })).toMatchObject({
    code: 1,
    stdout: `Erased ${ERASED}\n`,
    stderr: expect.stringContaining(`1 row of ${accountId} arrived during the erasure; stop its producers`),
  });
  expect(await erase(['--confirm', accountId])).toMatchObject({ code: 0 });
  expect(await stored(product.warehouse, accountId)).toMatchObject({ events: 0 });
});
