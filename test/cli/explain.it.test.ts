/** `meterline explain` against the real API: the events behind a figure, as a table, JSON and CSV. */
import { afterAll, beforeAll, expect, it } from '@jest/globals';
import { DEFAULT_PRICE_BOOK } from '@meterline/catalog';
import { oneServer, registerPriceBook } from '@meterline/warehouse';
import { bearer, startApi, type TestApi } from '../harness/api.js';
import { type EventSketch, event } from '../harness/events.js';
import { withApiProxy } from '../harness/services.js';
import { execute } from '../harness/stack.js';
import { callerOf, runCommand } from './run-command.js';

const HOUR = ['explain', '--from', '2025-10-05T10:00:00Z', '--to', '2025-10-05T11:00:00Z'];
let api: TestApi;
let globex: Record<string, string>;
beforeAll(async () => {
  api = await startApi();
  globex = await callerOf(api, 'globex');
  const { warehouse } = api.dependencies;
  await registerPriceBook(oneServer(warehouse), DEFAULT_PRICE_BOOK);
  await execute(warehouse, 'SYSTEM STOP MERGES usage_events');
  const store = (fields: EventSketch) => api.seed([event({ accountId: 'globex', ...fields })]);
  const first = { eventId: '018f0000-0000-7000-8000-000000000001', at: '2025-10-05T10:30:00.250Z' };
  await store({ ...first, usage: '1', cost: '0.0000115' });
  await store({ ...first, usage: '1200', cost: '0.0138', revision: 1 });
  await store({
    eventId: '018f0000-0000-7000-8000-000000000002',
    at: '2025-10-05T10:00:00Z',
    cost: '2',
    priceBook: 4,
  });
});
afterAll(async () => {
  await execute(api.dependencies.warehouse, 'SYSTEM START MERGES usage_events');
  await api.stop();
});

function run(args: readonly string[], env = globex) {
  return runCommand(args, { env });
}

it('explain lists events with their prices, their earlier payloads and their sum', async () => {
  expect(await run(HOUR)).toEqual({
    code: 0,
    stderr: '',
    stdout: [
      'TIME                     EVENT                                 WORKSPACE  RESOURCE  DIMENSION                         USAGE                PRICE        COST',
      '2025-10-05T10:30:00.25Z  018f0000-0000-7000-8000-000000000001  main       box       sandbox_compute_runtime_gbs  1,200 GB-s  $0.0000115 per GB-s     $0.0138',
      '                           was revision 0                      main       box       sandbox_compute_runtime_gbs      1 GB-s  $0.0000115 per GB-s  $0.0000115',
      '2025-10-05T10:00:00Z     018f0000-0000-7000-8000-000000000002  main       box       sandbox_compute_runtime_gbs      1 GB-s           ? (book 4)       $2.00',
      '2 shown                                                                                                                                              $2.0138',
      '',
    ].join('\n'),
  });
});

it('explain prints how to continue, the response as JSON, and that there are no events', async () => {
  const first = await run([...HOUR, '--limit', '1']);
  // A cursor is of one window.
  const [, from, to, cursor = ''] = /--from (\S+) --to (\S+) --cursor (\S+)\n$/.exec(first.stderr) ?? [];
  expect([from, to]).toEqual(['2025-10-05T10:00:00Z', '2025-10-05T11:00:00Z']);
  const second = await run([...HOUR, '--limit', '1', '--cursor', cursor, '--json']);
  expect(JSON.parse(second.stdout).data.map(({ cost }: { cost: number }) => cost)).toEqual([2]);
  const none = await run([...HOUR, '--filter', 'resourceName=other']);
  expect(none).toMatchObject({ code: 0, stdout: 'No events in this window.\n' });
  expect(none.stderr).toContain('check the spelling of the filter values');
});

it('explain orders events by cost, and prints all pages as a table, CSV or JSON', async () => {
  const [first, second] = ['1', '2'].map((digit) => `018f0000-0000-7000-8000-00000000000${digit}`);
  const all = async (...args: string[]) => {
    const { code, stdout, stderr } = await run([...HOUR, '--limit', '1', '--all', ...args]);
    expect([code, stderr]).toEqual([0, 'Read 2 events on 2 pages.\n']);
    return stdout.split(/\r?\n/);
  };
  const [, dearest, cheapest] = await all('--order-by', 'cost', '--order', 'desc');
  expect([dearest, cheapest]).toEqual([expect.stringContaining(`${second}`), expect.stringContaining(`${first}`)]);
  const [heading, ...lines] = await all('--csv');
  expect(heading).toBe(
    'timestamp,workspace,resourceType,resourceName,resourceUuid,billingDimension,usage,cost,voided,revision,priceRevision,' +
      'priceBook,price.amount,price.per,price.effectiveFrom,eventId,history',
  );
  expect(lines).toEqual([
    expect.stringContaining(`1200,0.0138,false,1,0,0,0.0000115,1,1970-01-01T00:00:00Z,${first},`),
    `2025-10-05T10:00:00Z,main,sandbox,box,u-1,sandbox_compute_runtime_gbs,1,2,false,0,0,4,,,,${second},[]`,
    '',
  ]);
  const excel = (await all('--csv=excel')).join('\n');
  expect([excel.startsWith('\uFEFF'), excel.slice(1)]).toEqual([true, [heading, ...lines].join('\n')]);
  const pages = await all('--json', '--order', 'desc');
  expect(pages.slice(0, -1).map((page) => JSON.parse(page).data[0].eventId)).toEqual([second, first]);
  const one = await run([...HOUR, '--limit', '1', '--csv']);
  expect(one.stdout.split('\n')).toHaveLength(3);
  expect(one.stderr).toMatch(/^There are more events. Use --all for all events, or for the next page, add --from /);
});

it('explain continues after a page without events', async () => {
  const interfere = async (path: string) => {
    if (!path.includes('/events?')) return undefined;
    const empty = { data: [], meta: { hasMore: true, nextCursor: 'next' } };
    if (!path.includes('cursor=')) return { status: 200, body: empty };
    const { body } = await api.request(path.replace('cursor=next', ''), bearer(globex['METERLINE_API_KEY'] ?? ''));
    return { status: 200, body };
  };
  const shown = await withApiProxy(api.url, interfere, (url) => run(HOUR, { ...globex, METERLINE_API_URL: url }));
  expect(shown).toMatchObject({ code: 0, stdout: expect.stringContaining('2 shown') });
});

it('explain --all by cost lists each event once, even if its cost changes between two pages', async () => {
  let revision = 1;
  const interfere = async (path: string) => {
    if (!path.includes('cursor=')) return undefined;
    revision += 1;
    const first = { eventId: '018f0000-0000-7000-8000-000000000001', at: '2025-10-05T10:30:00.250Z' };
    await api.seed([event({ accountId: 'globex', ...first, cost: String(revision + 1), revision })]);
    return undefined;
  };
  const byCost = [...HOUR, '--limit', '1', '--all', '--order-by', 'cost'];
  const { stdout, stderr } = await withApiProxy(api.url, interfere, (url) =>
    run([...byCost, '--csv'], { ...globex, METERLINE_API_URL: url }),
  );
  expect(stdout.split('\n').map((line) => /,018f0000-[^,]*(\d),/.exec(line)?.[1])).toEqual([
    undefined,
    '1',
    '2',
    undefined,
  ]);
  expect(stderr).toBe('Read 2 events on 2 pages.\n');
  expect(await run([...byCost, '--json'])).toEqual({
    code: 2,
    stdout: '',
    stderr: expect.stringContaining('--all --json prints events by time'),
  });
});
