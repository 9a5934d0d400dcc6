/** When an answer is computed, and when it is one that was kept: of two query processes, for admins and members. */
import { afterAll, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import { KeptAnswers } from '@meterline/query';
import {
  createWarehouse,
  EventRows,
  insertUsageEvents,
  markStaleHours,
  Names,
  type PricedEvent,
  sealNext,
  type Warehouse,
} from '@meterline/warehouse';
import { WRITER } from '../late-events.js';
import { createTestDatabase, type TestDatabase } from '../stack.js';
import { bearer, DAY, event, metricsBody, metricsPath, type Query, startApi, type TestApi } from './fixture.js';

const NEXT_DAY = { startTime: '2025-10-02T00:00:00Z', endTime: '2025-10-03T00:00:00Z' };

let database: TestDatabase;
/** That of the APIs, whose statements are counted. */
let warehouse: Warehouse;
/** The names of the statements that questions have needed. */
let statements: string[] = [];
let first: TestApi;
let second: TestApi;
let away: { readonly of: TestApi; isAway: boolean };
beforeAll(async () => {
  database = await createTestDatabase();
  const observe = (name: string) => {
    statements.push(name);
    return () => undefined;
  };
  warehouse = createWarehouse({ ...database.options, observe });
  first = await startApi({ warehouse });
  const { admission, keys, accounts, stamps } = first.dependencies;
  second = await startApi({ warehouse, admission, keys, accounts, stamps });
  const state = { isAway: false };
  const sometimes = {
    read: async (account: string) => (state.isAway ? undefined : stamps.read(account)),
  };
  const of = await startApi({ warehouse, admission, keys, accounts, stamps: sometimes });
  away = Object.assign(state, { of });
  await first.seed([event({ accountId: 'acme', workspace: 'a' }), event({ accountId: 'acme', workspace: 'b' })]);
  while (await sealNext(database.warehouse, Date.parse(DAY.endTime)));
});
afterAll(async () => {
  await Promise.all([first.stop(), second.stop(), away.of.stop()]);
  await warehouse.close();
  await database.drop();
});
beforeEach(() => {
  statements = [];
});

/** As a worker does it. */
async function store(event: PricedEvent): Promise<void> {
  await insertUsageEvents(warehouse, [event]);
  const stale = await markStaleHours(warehouse, WRITER, [EventRows.of([event], new Names())]);
  await first.renewStamps(
    [event.accountId],
    stale.map(({ accountId }) => accountId),
  );
}

const computed = () => statements.filter((name) => name === 'read_metrics').length;

async function ask(api: TestApi, key: string, query: Query | string, headers: Record<string, string> = {}) {
  const { headers: authorization } = bearer(key);
  const answer = await api.request(metricsPath('acme', query), { headers: { ...authorization, ...headers } });
  return { ...answer, cost: answer.status === 200 ? metricsBody.parse(answer.body).summary.totalCost : undefined };
}

describe.each([
  ['of sealed hours', DAY, 2],
  ['of hours that are not sealed', NEXT_DAY, 0],
])('a question %s', (_what, window, cost) => {
  it('is computed once, and its answer is the same to the byte', async () => {
    const key = await first.key('acme');
    const answers = [await ask(first, key, window), await ask(first, key, window), await ask(first, key, window)];
    expect([answers.map((answer) => answer.cost), computed()]).toEqual([[cost, cost, cost], 1]);
    expect(new Set(answers.map(({ text }) => text)).size).toBe(1);
    const ids = answers.map(({ headers }) => headers.get('x-request-id'));
    expect(new Set(ids).size).toBe(3);
    for (const { headers } of answers) expect(headers.get('ratelimit')).not.toBeNull();
  });

  it('is computed again, in each process, when events of the account have changed', async () => {
    const key = await first.key('acme');
    const before = [await ask(first, key, window), await ask(second, key, window)];
    const at = new Date(Date.parse(window.startTime) + 3_600_000).toISOString();
    const added = event({ accountId: 'acme', at, cost: '5' });
    await store(added);
    const after = [await ask(first, key, window), await ask(second, key, window)];
    expect(before.map((answer) => answer.cost)).toEqual([cost, cost]);
    expect(after.map((answer) => answer.cost)).toEqual([cost + 5, cost + 5]);
    await store({ ...added, revision: 1, voided: true });
    expect((await ask(first, key, window)).cost).toBe(cost);
  });
});

describe('a kept answer', () => {
  it('is of the role of its caller, of the version and of the exact question', async () => {
    const [admin, member] = [await first.key('acme', 'admin'), await first.key('acme', 'member')];
    const query = { ...DAY, groupBy: 'resource_name' };
    const ofAdmin = await ask(first, admin, { ...query, filler: '' });
    expect(ofAdmin.status).toBe(400);
    statements = [];
    await ask(first, admin, query);
    await ask(first, member, query);
    await ask(first, admin, query, { 'svc-version': '2026-04-28' });
    await ask(first, admin, { ...query, limit: '5' });
    expect(computed()).toBe(4);
    const byWorkspace = { ...DAY, groupBy: 'workspace' };
    expect((await ask(first, admin, byWorkspace)).status).toBe(200);
    expect((await ask(first, member, byWorkspace)).status).toBe(403);
    expect((await ask(first, await first.key('globex'), query)).status).toBe(403);
  });

  it('is not given while Redis does not say whether it is out of date, and what is computed then is not kept', async () => {
    const key = await first.key('acme', 'admin', 'away');
    await ask(away.of, key, DAY);
    away.isAway = true;
    await ask(away.of, key, DAY);
    await ask(away.of, key, { ...DAY, limit: '7' });
    expect(computed()).toBe(3);
    away.isAway = false;
    await ask(away.of, key, DAY);
    expect(computed()).toBe(3);
    await ask(away.of, key, { ...DAY, limit: '7' });
    expect(computed()).toBe(4);
  });

  it('is refused to a key that was revoked', async () => {
    const { key, keyId } = await first.keys.create({ account: 'acme', role: 'admin', clientId: 'gone' }, new Date(0));
    await ask(first, key, DAY);
    await first.keys.revoke(keyId, new Date(0));
    expect((await ask(first, key, DAY)).status).toBe(401);
  });

  it('begins a walk whose pages add up', async () => {
    const events = Array.from({ length: 5 }, (_, n) =>
      event({ accountId: 'walk', resourceName: `box-${n}`, cost: `${n + 1}` }),
    );
    for (const each of events) await store(each);
    const key = await first.key('walk');
    const path = metricsPath('walk', { ...NEXT_DAY, startTime: DAY.startTime, groupBy: 'resource_name', limit: '2' });
    for (let walk = 0; walk < 2; walk += 1) {
      let costs = 0;
      for (let cursor = ''; ; ) {
        const { body } = await first.request(`${path}${cursor && `&cursor=${cursor}`}`, bearer(key));
        const page = metricsBody.parse(body);
        for (const { summary } of page.data) costs += summary.cost;
        expect(page.summary.totalCost).toBe(15);
        cursor = page.meta.nextCursor;
        if (cursor === '') break;
      }
      expect(costs).toBe(15);
    }
    expect(computed()).toBe(1);
  });

  it('that is under way is computed once for all', async () => {
    const key = await first.key('acme');
    const query = { ...DAY, groupBy: 'billing_dimension' };
    const answers = await Promise.all(Array.from({ length: 20 }, () => ask(first, key, query)));
    expect(new Set(answers.map(({ status, text }) => `${status} ${text}`)).size).toBe(1);
    expect(computed()).toBe(1);
  });

  it('is none where there is no memory for it', async () => {
    const { admission, keys, accounts, stamps } = first.dependencies;
    const api = await startApi({
      ...{ warehouse, admission, keys, accounts, stamps },
      answers: new KeptAnswers(0),
    });
    const key = await first.key('acme');
    await ask(api, key, DAY);
    await ask(api, key, DAY);
    expect(computed()).toBe(2);
    await api.stop();
  });
});

describe('If-None-Match', () => {
  it('gets 304 without a body while the answer is the same, and the answer when it is another', async () => {
    const key = await first.key('acme');
    const { headers, status } = await ask(first, key, DAY);
    expect([status, headers.get('cache-control')]).toEqual([200, 'private, no-cache']);
    const etag = headers.get('etag') ?? '';
    expect(etag).toMatch(/^W\/"[\w-]{22}"$/);
    for (const api of [first, second, away.of]) {
      const again = await ask(api, key, DAY, { 'if-none-match': etag });
      expect([again.status, again.text, again.headers.get('etag')]).toEqual([304, '', etag]);
      expect(again.headers.get('x-request-id')).not.toBeNull();
      expect([headers.get('vary'), again.headers.get('vary')]).toEqual(['Accept-Encoding', 'Accept-Encoding']);
    }
    // The comparison is the weak one: a cache may have left out what says so.
    expect((await ask(first, key, DAY, { 'if-none-match': etag.slice('W/'.length) })).status).toBe(304);
    const other = await ask(first, key, { ...DAY, groupBy: 'workspace' }, { 'if-none-match': `"x", ${etag}` });
    expect(other.status).toBe(200);
    expect((await ask(first, key, DAY, { 'if-none-match': `"x", ${etag}` })).status).toBe(304);
    expect((await ask(first, key, DAY, { 'if-none-match': '*' })).status).toBe(304);
    // A caller who may not have the answer does not learn whether it has changed.
    expect((await ask(first, await first.key('globex'), DAY, { 'if-none-match': etag })).status).toBe(403);
  });
});
