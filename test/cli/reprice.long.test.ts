/** meterline reprice, between producers that go on sending. */
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import { QUEUE_NAME, type UsageEventInput } from '@meterline/catalog';
import { hostsOf, insertUsageEvents, readRepricingStep, sealNext } from '@meterline/warehouse';
import { Queue } from 'bullmq';
import { TcpProxy } from '../faults/tcp-proxy.js';
import { usageEvent } from '../harness/events.js';
import { writePriceBook } from '../harness/price-book-file.js';
import { type Product, startProduct } from '../harness/product.js';
import { drained, enqueueData } from '../harness/queue.js';
import { killServices } from '../harness/services.js';
import { select, testRedisUrl, uniquePrefix } from '../harness/stack.js';
import { runCommand } from './run-command.js';
import type { MeterlineOptions } from './run-meterline.js';

const SANDBOX = 'sandbox_compute_runtime_gbs';
const WINDOW = ['--from', '2026-01-01T00:00:00Z', '--to', '2026-01-02T00:00:00Z'];

let directory: string;
/** The built-in book, at twice the price of a sandbox's compute, as version 1. */
let twice: string;
let product: Product;
/** Leads to a worker that has the new book; the product's own queue to one that has the built-in book. */
let newPrices: Queue;

beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), 'meterline-reprice-'));
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
  await rm(directory, { recursive: true });
});

let accountId: string;
beforeEach(() => {
  accountId = uniquePrefix();
});

/** Event number n of the account that only this test uses. */
const event = (n: number, changes: Partial<UsageEventInput> = {}) => usageEvent(n, { accountId, ...changes });
const events = (count: number) => Array.from({ length: count }, (_, n) => event(n));

const bookFile = (name: string, ...prices: [version: number, amount: string, effectiveFrom?: string]) =>
  writePriceBook(join(directory, name), ...prices);

/** A command about the test's account. */
function run(command: string, args: readonly string[], options: MeterlineOptions = {}) {
  return runCommand([command, '--account', accountId, ...args], {
    ...options,
    env: { ...product.env, ...options.env },
  });
}

/** On 1 January 2026, unless the arguments say otherwise. */
const reprice = (args: readonly string[], options?: MeterlineOptions) => run('reprice', [...WINDOW, ...args], options);

/** Sends the events and waits until they are stored, with the built-in prices or the new ones. */
async function ingest(batch: readonly UsageEventInput[], queue = product.queue): Promise<void> {
  await enqueueData(queue, { events: batch });
  await drained(queue);
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

describe('meterline reprice', () => {
  it('shows with --dry-run what would change, writes nothing, and then changes just that', async () => {
    const job = { resourceType: 'job', billingDimension: 'job_compute_runtime_gbs' } as const;
    const voided = event(3, { void: true });
    await ingest([event(0), event(1, { usage: '0.333333333' }), event(2, job), voided]);
    const before = await sums();

    const other = await bookFile('other.json', 3, '0.000023');
    const rehearsal = await reprice(['--book', other, '--dry-run', '--json']);
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
    expect(JSON.parse(rehearsal.stdout)).toMatchObject({ ...result, dryRun: true });
    expect(await sums()).toEqual(before);
    expect(await isRegistered(3)).toBe(false);

    const { code, stdout } = await reprice(['--book', other, '--json']);
    expect({ code, result: JSON.parse(stdout) }).toMatchObject({ code: 0, result });
    expect(await sums()).toEqual({ events: 3, usage: '2.333333333', cost: '0.000036666667', repriced: 2 });
    expect(await isRegistered(3)).toBe(true);
  });

  it('prints a table for people and says where the window begins and ends', async () => {
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

  it('lets the producer win: a higher revision wins, the same one again changes nothing', async () => {
    await ingest(events(4));
    await reprice(['--book', twice]);
    const repriced = await sums();
    expect(repriced).toMatchObject({ cost: '0.000092', repriced: 4 });

    await ingest(events(4), newPrices);
    expect(await sums()).toEqual(repriced);

    const revised = [event(0, { revision: 1, usage: 10 }), event(1, { revision: 1, void: true })];
    await ingest(revised, newPrices);
    expect(await sums()).toEqual({ events: 3, usage: '12', cost: '0.000276', repriced: 2 });
  });

  it('goes on where a killed one ended, does nothing twice, and yields to what producers sent in between', async () => {
    await ingest(events(1_000));
    const args = ['--book', twice, '--step', '25'];
    const killed = await reprice(args, { interruptAt: '100 done', interruptWith: 'SIGKILL' });
    expect(killed).toMatchObject({ code: null, stdout: '' });
    const half = await sums();
    expect(half?.repriced).toBeGreaterThanOrEqual(100);
    expect(half?.repriced).toBeLessThan(1_000);

    // Some of them lie before the place where it was killed, some after.
    const revised = Array.from({ length: 30 }, (_, n) => event(n * 33, { revision: 1, usage: 2 }));
    await ingest(revised, newPrices);
    const between = await sums();

    const second = await reprice([...args, '--json']);
    const { total } = JSON.parse(second.stdout);
    expect(total).toMatchObject({ events: 1_000, changed: 1_000 - 30 - (between?.repriced ?? 0), after: '0.02369' });
    expect(await sums()).toMatchObject({ events: 1_000, usage: '1030', cost: '0.02369', repriced: 970 });

    const third = await reprice([...args, '--json']);
    expect(JSON.parse(third.stdout)).toMatchObject({ total: { changed: 0, difference: '0' } });
  });

  it('and workers with the new book give every event the new price, whatever arrives meanwhile', async () => {
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

  it('says that it can go on when ClickHouse goes away while it runs', async () => {
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
      stdin: { at: '100 done', answer: refuse },
    });
    await Promise.all(proxies.map((proxy) => proxy.close()));
    expect(ended).toMatchObject({ code: 1, stdout: '' });
    expect(ended.stderr).toContain(
      'Stopped on the way. Run the same command again: it does the rest, and nothing twice.',
    );
    expect(ended.stderr).toContain('cannot reach ClickHouse');
    expect(await reprice(['--book', twice])).toMatchObject({ code: 0 });
    expect(await sums()).toMatchObject({ events: 1_000, repriced: 1_000 });
  });

  it.each([
    ['of a rehearsal', ['--dry-run'], 'interrupted; nothing was changed'],
    ['between two steps', [], 'interrupted. Run the same command again: it does the rest, and nothing twice.'],
  ])('stops at Ctrl-C %s and says what is left', async (_when, args, words) => {
    await ingest(events(1_000));
    const ended = await reprice(['--book', twice, '--step', '25', ...args], { interruptAt: '100 done' });
    expect(ended).toMatchObject({ code: 1, stderr: expect.stringContaining(words) });
    expect((await sums())?.repriced).toBeLessThan(1_000);
  });

  it('writes nothing when an event is older than its first price, and names the event', async () => {
    await ingest([event(0), event(3_600)]);
    const late = await bookFile('late.json', 2, '1', '2026-01-01T01:00:00Z');
    const ended = await reprice(['--book', late]);
    expect(ended).toMatchObject({ code: 1, stdout: '' });
    expect(ended.stderr).toContain(`no price for ${SANDBOX} at 2026-01-01T00:00:00Z, the time of event 0190c5e4-`);
    expect(await sums()).toMatchObject({ repriced: 0 });
    expect(await reprice(['--book', late, '--from', '2026-01-01T01:00:00Z'])).toMatchObject({ code: 0 });
    expect(await sums()).toMatchObject({ repriced: 1, cost: '1.0000115' });
  });

  it('does not use up the version of a book that lacks a price: fixed, it is accepted', async () => {
    await ingest([event(0)]);
    const late = await bookFile('lacks.json', 4, '1', '2026-01-01T01:00:00Z');
    expect(await reprice(['--book', late])).toMatchObject({ code: 1 });
    expect(await reprice(['--book', await bookFile('fixed.json', 4, '1')])).toMatchObject({ code: 0 });
    expect(await sums()).toMatchObject({ repriced: 1 });
  });

  it('says that there are no events, and uses up no version for them', async () => {
    expect(await reprice(['--book', await bookFile('unused.json', 5, '1')])).toMatchObject({
      code: 0,
      stdout: `Account ${accountId} has no events in this window.\n`,
    });
    expect(await isRegistered(5)).toBe(false);
  });

  it('refuses a book whose version has other prices, also with --dry-run', async () => {
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

  it('names a price book that it cannot use', async () => {
    const bad = join(directory, 'bad.json');
    await writeFile(bad, '{"version": 1}');
    expect(await reprice(['--book', join(directory, 'none.json')])).toMatchObject({
      code: 1,
      stderr: expect.stringContaining('none.json: there is no such file'),
    });
    expect(await reprice([], { env: { PRICE_BOOK: bad } })).toMatchObject({
      code: 1,
      stderr: expect.stringMatching(/bad\.json \(from PRICE_BOOK\) cannot be used: currency must be "USD"/),
    });
  });

  it('changes sealed rollup rows too, also those of events whose prices an interrupted run has changed already', async () => {
    await ingest([event(0), event(1), event(3_700)]);
    const { all, whole } = product.shards;
    while (await sealNext(all, Date.UTC(2026, 0, 3)));
    const window = { startTime: Date.UTC(2026, 0, 1), endTime: Date.UTC(2026, 0, 2) };
    const [first] = await readRepricingStep(whole, { accountId, window }, undefined, 1);
    if (!first) throw new Error('nothing was stored');
    // What a run leaves behind that was killed after an insert.
    await insertUsageEvents(whole, [{ ...first, cost: 2n * first.cost, priceRevision: 1, priceBook: 1 }]);
    expect((await run('audit', [])).code).toBe(1);

    expect((await reprice(['--book', twice])).code).toBe(0);
    expect(await run('audit', [])).toMatchObject({ code: 0, stdout: expect.stringContaining('Compared 1 day.') });
  });
});
