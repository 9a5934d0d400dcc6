/** A large response, page by page, while the events behind it go on changing. */
import { afterAll, beforeAll, expect, it } from '@jest/globals';
import { StoredGroups } from '@meterline/query';
import { createRedisClient, REDIS_POLICIES } from '@meterline/service/access';
import { createWarehouse, type PricedEvent } from '@meterline/warehouse';
import fc from 'fast-check';
import { z } from 'zod';
import {
  allPages,
  bearer,
  DAY,
  errorOf,
  type MetricsBody,
  metricsBody,
  metricsPath,
  type Query,
  readMetrics,
  startApi,
  type TestApi,
} from '../harness/api.js';
import { event } from '../harness/events.js';
import { createTestDatabase, execute, testRedisUrl, uniquePrefix } from '../harness/stack.js';

/** More rows than a block of ClickHouse (8,192). */
const GROUPS = 12_000;
/** How often all pages are read with events at random. */
const RUNS = 40;
const BY_UUID = { ...DAY, groupBy: 'resource_uuid', limit: '100' };
/** Whole dollars, so that sums of JSON's doubles are exact; the ranking is that of the numbers. */
const BOXES = Array.from({ length: GROUPS }, (_, index) =>
  event({ resourceUuid: uuid(index), cost: String(GROUPS - index) }),
);
const TOTAL = (GROUPS * (GROUPS + 1)) / 2;

function uuid(index: number): string {
  return `box-${String(index).padStart(5, '0')}`;
}

/** A more expensive group appears, and one that was shown grows; or, after a second page, a group disappears that was not yet shown. */
function changesAfter(page: number): PricedEvent[] {
  if (page % 10 === 1) {
    return [event({ resourceUuid: `new-${page}`, cost: '1000000' }), event({ resourceUuid: uuid(page), cost: '500' })];
  }
  const last = page % 10 === 2 ? BOXES[GROUPS - page] : undefined;
  return last ? [{ ...last, revision: 1, voided: true }] : [];
}

const redis = createRedisClient(testRedisUrl(), REDIS_POLICIES.request);
let api: TestApi;
let key: string;
beforeAll(async () => {
  await redis.connect();
  api = await startApi({ storedGroups: new StoredGroups(redis, uniquePrefix(), 6 * GROUPS) });
  key = await api.key('acme');
  await api.seed(BOXES);
});
afterAll(async () => {
  await api.stop();
  redis.disconnect();
});

const storedGroup = z.object({ groups: z.number() });
const stored = async (account_id: string) => {
  const query = 'SELECT toUInt32(count()) AS groups FROM result_pages WHERE account_id = {account_id: String}';
  const statement = { name: 'count_groups', query, query_params: { account_id } };
  return (await api.dependencies.warehouse.read(statement, storedGroup))[0]?.groups;
};
const ask = (account: string, token: string, query: Record<string, string>) =>
  api.request(metricsPath(account, query), bearer(token));

it('nothing of a large result is stored for its first page, however often that is requested', async () => {
  for (let time = 0; time < 5; time += 1) {
    const page = await readMetrics(api, 'acme', key, BY_UUID);
    expect([page.summary, page.data.length]).toEqual([{ totalCost: TOTAL }, 100]);
  }
  expect(await stored('acme')).toBe(0);
});

it('each group of a large result comes once while events keep arriving, as it was for the first page, and all add up to the total', async () => {
  let read = 0;
  const pages = await allPages(async (cursor) => {
    const page = await readMetrics(api, 'acme', key, { ...BY_UUID, cursor });
    expect(page.summary).toEqual({ totalCost: TOTAL });
    read += 1;
    await api.seed(changesAfter(read));
    return page;
  });
  const groups = pages.flatMap(({ data }) => data);
  expect(groups.map(({ resourceUuid }) => resourceUuid)).toEqual(BOXES.map(({ resourceUuid }) => resourceUuid));
  const cost = groups.reduce((sum, { summary }) => sum + summary.cost, 0);
  expect([pages.length, cost, await stored('acme')]).toEqual([GROUPS / 100, TOTAL, GROUPS]);
  // Another first page begins another result.
  const { data } = await readMetrics(api, 'acme', key, BY_UUID);
  expect(data[0]).toMatchObject({ resourceUuid: 'new-1', summary: { cost: 1_000_000 } });
}, 180_000);

it('a second page is 429 to a caller that would store more than it may, and to no other caller; a first page never is', async () => {
  const first = await readMetrics(api, 'acme', key, BY_UUID);
  const response = await ask('acme', key, { ...BY_UUID, cursor: first.meta.nextCursor });
  expect(response.status).toBe(429);
  expect(Number(response.headers.get('retry-after'))).toBeGreaterThan(23 * 3_600);
  expect(errorOf(response)).toMatchObject({
    error: 'too_many_stored_groups',
    message: expect.stringMatching(
      /has 12?,000 groups, .* filter, group by fewer dimensions, or try again in 1,4\d\d minutes\.$/,
    ),
  });
  await readMetrics(api, 'acme', key, BY_UUID);
  const colleague = await api.key('acme', 'admin', 'colleague');
  await readMetrics(api, 'acme', colleague, { ...BY_UUID, cursor: first.meta.nextCursor });
  // The result is stored now, so reading it needs no room.
  await readMetrics(api, 'acme', key, { ...BY_UUID, cursor: first.meta.nextCursor });
});

it('room for groups is taken before they are stored, whoever asks at the same moment, and given back where none were', async () => {
  const room = new StoredGroups(redis, uniquePrefix(), 400);
  const principal = { account: 'acme', caller: 'one' };
  const [first, ...others] = await Promise.allSettled([60, 60].map((groups) => room.reserve(principal, groups)));
  expect([first?.status, ...others.map(({ status }) => status)].sort()).toEqual(['fulfilled', 'rejected']);
  const release = await room.reserve(principal, 40);
  await release();
  await room.reserve(principal, 40);
});

const BY_TWO = { ...DAY, groupBy: 'resource_uuid', limit: '2' };
let accounts = 0;

/** A new account with five groups, and how it reads them. */
async function begin() {
  accounts += 1;
  const accountId = `account-${accounts}`;
  const token = await api.key(accountId);
  const events = [9, 7, 5, 3, 1].map((cost, index) =>
    event({ accountId, resourceUuid: uuid(index), cost: String(cost) }),
  );
  await api.seed(events);
  return {
    accountId,
    events,
    page: (cursor = '', limit = '2') => readMetrics(api, accountId, token, { ...BY_TWO, limit, cursor }),
    next: (cursor: string) => ask(accountId, token, { ...BY_TWO, cursor }),
  };
}
const costsOf = (...pages: readonly MetricsBody[]) =>
  pages.flatMap(({ data }) => data.map(({ summary }) => summary.cost));
const merge = () => execute(api.dependencies.warehouse, 'OPTIMIZE TABLE usage_events FINAL');

it('paginating goes on when the last thing that its first page had seen was a void', async () => {
  const { events, page } = await begin();
  await api.seed(events.slice(4).map((last) => ({ ...last, revision: 1, voided: true })));
  const first = await page();
  const second = await page(first.meta.nextCursor);
  expect([costsOf(first, second), second.meta.hasMore]).toEqual([[9, 7, 5, 3], false]);
});

it('paginating shows the same groups when the second page is requested twice at once', async () => {
  const { page } = await begin();
  const { meta } = await page();
  const [one, other] = await Promise.all([page(meta.nextCursor), page(meta.nextCursor)]);
  expect(other.data).toEqual(one.data);
  expect(costsOf(one, await page(other.meta.nextCursor))).toEqual([5, 3, 1]);
});

it('paginating goes on after what was stored is lost, as long as nothing has changed', async () => {
  const { accountId, page } = await begin();
  const second = await page((await page()).meta.nextCursor);
  await execute(api.dependencies.warehouse, `ALTER TABLE result_pages DELETE WHERE account_id = '${accountId}'`);
  expect(costsOf(await page(second.meta.nextCursor))).toEqual([1]);
});

const change = fc.record({
  kind: fc.constantFrom('new', 'again', 'revised', 'voided', 'merged'),
  group: fc.nat({ max: 4 }),
  cost: fc.integer({ min: 1, max: 9 }),
});
const changes = fc.array(change, { maxLength: 4 });
/** Nothing that surely counts follows the last void, so the void may be newer than all that the response was read from. */
const endsWithVoid = (made: readonly { kind: string }[]) =>
  made.findLast(({ kind }) => kind === 'new' || kind === 'revised' || kind === 'voided')?.kind === 'voided';

it('paginating agrees with its first page or says that it has expired, whatever happens in between', async () => {
  const property = fc.asyncProperty(changes, changes, async (before, after) => {
    const { accountId, events, page, next } = await begin();
    let revision = 0;
    const apply = async ({ kind, group, cost }: { kind: string; group: number; cost: number }) => {
      revision += 1;
      const old = events[group];
      if (kind === 'merged') return merge();
      if (kind === 'new' || !old) {
        return api.seed([event({ accountId, resourceUuid: uuid(group), cost: String(cost) })]);
      }
      if (kind === 'again') return api.seed([old]);
      return api.seed([{ ...old, revision, voided: kind === 'voided', cost: BigInt(cost) * 10n ** 12n }]);
    };
    for (const one of before) await apply(one);
    const whole = await page('', '100');
    const first = await page();
    for (const one of after) await apply(one);
    const shown = [...first.data];
    for (let cursor = first.meta.nextCursor; cursor !== ''; ) {
      const response = await next(cursor);
      if (response.status === 400) {
        expect(errorOf(response).error).toBe('cursor_expired');
        const isReplaced = after.some(({ kind }) => kind !== 'new');
        expect(isReplaced || endsWithVoid(before)).toBe(true);
        return;
      }
      const { summary, data, meta } = metricsBody.parse(response.body);
      expect(summary).toEqual(whole.summary);
      shown.push(...data);
      cursor = meta.nextCursor;
    }
    expect(shown).toEqual(whole.data);
  });
  await fc.assert(property, { numRuns: RUNS });
});

it('a response that may not be stored is refused without being computed', async () => {
  const statements: string[] = [];
  const database = await createTestDatabase();
  const warehouse = createWarehouse({
    ...database.options,
    observe: (name) => (end) => statements.push(`${name} ${end}`),
  });
  const own = await startApi({ warehouse, storedGroups: new StoredGroups(redis, uniquePrefix(), 1_000) });
  const key = await own.key('many');
  await own.seed(Array.from({ length: 200 }, (_, index) => event({ accountId: 'many', resourceUuid: uuid(index) })));
  const secondPage = async (query: Query = BY_UUID) => {
    const { meta } = await readMetrics(own, 'many', key, query);
    statements.length = 0;
    return own.request(metricsPath('many', { ...query, cursor: meta.nextCursor }), bearer(key));
  };
  expect((await secondPage()).status).toBe(200);
  // The same result from another first page needs no more room.
  expect((await secondPage()).status).toBe(200);
  const refused = await secondPage({ ...BY_UUID, resolution: 'daily' });
  expect([refused.status, errorOf(refused).error]).toEqual([429, 'too_many_stored_groups']);
  expect(statements).toEqual(['read_stored_metrics ok']);
  await own.seed(
    Array.from({ length: 51 }, (_, index) => event({ accountId: 'many', resourceUuid: uuid(200 + index) })),
  );
  const tooLarge = await secondPage();
  expect([tooLarge.status, errorOf(tooLarge).error]).toEqual([400, 'too_many_groups']);
  expect((await own.request(metricsPath('many', { ...DAY, groupBy: 'workspace' }), bearer(key))).status).toBe(200);
  await own.stop();
  await warehouse.close();
  await database.drop();
});
