/** The metrics of several accounts in one response, and the events behind a figure. Which accounts a token names is in authorisation. */
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import {
  DEFAULT_PRICE_BOOK,
  DEFAULT_PRICE_BOOK_FILE,
  eventPageSchema,
  MAX_EVENTS_BY_COST,
  PriceBook,
  readExactJson,
} from '@meterline/catalog';
import { ALL_ACCOUNTS, MeterlineClient } from '@meterline/client';
import { createWarehouse, onEachShard, registerPriceBook } from '@meterline/warehouse';
import { z } from 'zod';
import {
  allPages,
  bearer,
  DAY,
  errorOf,
  metricsBody,
  metricsPath,
  NOW,
  type Query,
  readMetrics,
  startApi,
  type TestApi,
} from '../harness/api.js';
import { type EventSketch, event } from '../harness/events.js';
import { execute, uniquePrefix } from '../harness/stack.js';
import { testDatabase } from '../harness/test-database.js';
import { startTokenIssuer, type TokenIssuer } from './callers.js';

const database = testDatabase();
let api: TestApi;
let issuer: TokenIssuer;
beforeAll(async () => {
  issuer = await startTokenIssuer(NOW);
  api = await startApi({ tokens: issuer.verifier, warehouse: database.warehouse });
});
afterAll(async () => {
  await api.stop();
  await issuer.close();
});

describe('the metrics of all accounts', () => {
  let key: string;
  let operator: string;
  /** Tokens for acme and globex: of an admin of both, and of an admin of acme who is a member of globex. */
  let admin: string;
  let mixed: string;
  beforeAll(async () => {
    key = await api.key('acme');
    // Reads all accounts of the database, so this part runs before the events of the other accounts are stored.
    operator = await api.key(undefined, 'operator');
    admin = await issuer.sign({ accounts: { acme: 'admin', globex: 'admin' } });
    mixed = await issuer.sign({ accounts: { acme: 'admin', globex: 'member' } });
    const costs = { acme: '3', globex: '2', initech: '100' };
    await api.seed(
      Object.entries(costs).flatMap(([accountId, cost]) => [
        event({ accountId, cost, workspace: 'main', resourceName: 'shared', resourceUuid: `${accountId}-1` }),
        event({ accountId, cost: '1', workspace: `of ${accountId}`, resourceName: `${accountId}-only` }),
      ]),
    );
  });

  type Parameters = readonly (readonly [name: string, value: string])[];

  function ask(credential: string, ...query: Parameters) {
    const parameters = [...Object.entries(DAY), ...query.map(([name, value]) => [name, value])];
    return api.request(`/v0/metrics?${new URLSearchParams(parameters)}`, bearer(credential));
  }

  async function read(credential: string, ...query: Parameters) {
    const response = await ask(credential, ...query);
    if (response.status !== 200) throw new Error(response.text);
    return metricsBody.parse(response.body);
  }

  const costsBy = async (credential: string, member: 'account' | 'workspace' | 'resourceName', ...query: Parameters) =>
    (await read(credential, ...query)).data.map((entry) => [entry[member], entry.summary.cost]);
  const BY_ACCOUNT = ['groupBy', 'account'] as const;
  const BY_NAME = ['groupBy', 'resource_name'] as const;

  it('the metrics of all accounts contain the accounts of the caller and no others, by cost', async () => {
    expect(await costsBy(admin, 'account', BY_ACCOUNT)).toEqual([
      ['acme', 4],
      ['globex', 3],
    ]);
    expect((await read(admin)).summary).toEqual({ totalCost: 7 });
    expect((await read(await issuer.sign({ accounts: {} }))).summary).toEqual({ totalCost: 0 });
    expect(await costsBy(key, 'account', BY_ACCOUNT)).toEqual([['acme', 4]]);
    for (const account of ['acme', 'globex', 'initech']) await api.key(account, 'member');
    expect(await costsBy(operator, 'account', BY_ACCOUNT, ['excludeAccount', 'acme'])).toEqual([
      ['initech', 101],
      ['globex', 3],
    ]);
  });

  it('the list of accounts of an operator has those with a key and those with usage, with the role operator', async () => {
    const { warehouse } = database;
    await api.key('umbrella *?[]', 'member');
    // Without a key: usage in events, in rollup rows whose events were dropped, and in late events that have no rollup row yet.
    await api.seed([event({ accountId: 'hooli', at: '2025-01-02T00:00:00Z' })]);
    await execute(
      warehouse,
      "INSERT INTO usage_daily (account_id, bucket, version) VALUES ('archived', '2024-01-02', 1)",
    );
    await execute(
      warehouse,
      "INSERT INTO dirty_hours (account_id, mark_id, hours, sign) VALUES ('late', generateUUIDv4(), ['2024-01-02'], 1)",
    );
    const { body } = await api.request('/v0/accounts', bearer(operator));
    const ids = z
      .array(z.object({ id: z.string() }))
      .parse(body)
      .map(({ id }) => id);
    const expected = ['acme', 'archived', 'globex', 'hooli', 'initech', 'late', 'umbrella *?[]'];
    expect(ids.toSorted()).toEqual(expected);
    expect(body).toContainEqual({ id: 'hooli', name: 'hooli', role: 'operator' });
    expect(body).toContainEqual(expect.objectContaining({ id: 'acme', role: 'operator' }));
    expect((await api.request('/v0/accounts', bearer(key))).body).toMatchObject([{ id: 'acme', role: 'admin' }]);
  });

  it('the metrics of all accounts have the additional dimension account', async () => {
    const groupBy = ['groupBy', 'billing_dimension,account,resource_name'] as const;
    const { data } = await read(admin, groupBy, ['resourceName', 'shared']);
    const entry = (account: string, cost: number) => ({
      ...{ account, workspace: 'main', resourceType: 'sandbox', resourceName: 'shared' },
      billingDimension: 'sandbox_compute_runtime_gbs',
      summary: { cost, usage: 1 },
    });
    expect(data.map(({ timeseries: _, ...fields }) => fields)).toEqual([entry('acme', 3), entry('globex', 2)]);
  });

  it.each(['', 'workspace', 'resource_uuid,billing_dimension'])(
    'the metrics of all accounts filtered by one account with groupBy=%s equal the metrics of that account, byte for byte',
    async (groupBy) => {
      const query = groupBy === '' ? [] : ([['groupBy', groupBy]] as const);
      const one = await api.request(metricsPath('acme', { ...DAY, ...Object.fromEntries(query) }), bearer(admin));
      for (const credential of [admin, mixed, operator]) {
        expect((await ask(credential, ['account', 'acme'], ...query)).text).toBe(one.text);
      }
    },
  );

  it('the metrics of all accounts show no workspace if the caller is only a member of one of the accounts', async () => {
    const workspaces = async (credential: string, ...query: Parameters) =>
      (await read(credential, BY_NAME, ...query)).data.map(({ workspace }) => workspace);
    expect(await workspaces(admin)).toEqual(['main', 'of acme', 'of globex']);
    expect(await workspaces(mixed)).toEqual([undefined, undefined, undefined]);
    expect(await workspaces(mixed, ['account', 'acme'])).toEqual(['main', 'of acme']);
    expect(await workspaces(mixed, ['excludeAccount', 'globex'])).toEqual(['main', 'of acme']);
    expect(errorOf(await ask(mixed, ['groupBy', 'workspace'])).error).toBe('forbidden');
    expect(await costsBy(mixed, 'workspace', ['groupBy', 'workspace'], ['account', 'acme'])).toHaveLength(2);
  });

  it('the metrics of all accounts never contain an account of somebody else, whatever the filters', async () => {
    expect(errorOf(await ask(admin, ['account', '\0user-1'])).error).toBe('invalid_parameter');
    for (const query of [
      ['resourceName', 'initech-only'],
      ['resourceUuid', 'initech-1'],
      ['workspace', 'of initech'],
    ] as const) {
      const { text } = await ask(admin, query, ['groupBy', 'account,resource_uuid']);
      expect([query, text.includes('initech')]).toEqual([query, false]);
    }
  });

  it('the metrics of all accounts have cursors and cached responses that are bound to the accounts and roles of the caller', async () => {
    const query = [BY_ACCOUNT, ['limit', '1']] as const;
    const cursorOf = async (credential: string) =>
      ['cursor', (await read(credential, ...query)).meta.nextCursor] as const;
    const own = await cursorOf(admin);
    for (const [credential, cursor] of [
      [admin, await cursorOf(operator)],
      [mixed, await cursorOf(operator)],
      [mixed, own],
    ] as const) {
      expect(errorOf(await ask(credential, ...query, cursor)).error).toBe('invalid_cursor');
    }
    expect(await costsBy(admin, 'account', ...query, own)).toEqual([['globex', 3]]);

    const cached = async (credential: string) => {
      const headers = { ...bearer(credential).headers, 'cache-control': 'max-age=300' };
      const search = new URLSearchParams({ ...DAY, groupBy: 'resource_name' });
      return (await api.request(`/v0/metrics?${search}`, { headers })).text;
    };
    const texts: string[] = [];
    for (const credential of [admin, mixed, operator, admin, mixed, operator]) texts.push(await cached(credential));
    expect([new Set(texts).size, texts.slice(3)]).toEqual([3, texts.slice(0, 3)]);
  });

  it('the metrics of all accounts come in pages of one snapshot while events arrive', async () => {
    const window = { startTime: '2025-09-01T00:00:00Z', endTime: '2025-09-02T00:00:00Z' };
    const at = window.startTime;
    const many = Array.from({ length: 250 }, (_, index) =>
      event({ accountId: index % 2 ? 'acme' : 'globex', at, resourceName: `box-${index}` }),
    );
    await api.seed(many);
    const client = new MeterlineClient({ baseUrl: api.url, credential: mixed, retries: 0 });
    const found: string[] = [];
    for await (const page of client.metricsPages(ALL_ACCOUNTS, { ...window, groupBy: ['account', 'resource_name'] })) {
      expect(page.summary.totalCost).toBe('250');
      found.push(...page.data.map(({ account, resourceName }) => `${account} ${resourceName}`));
      await api.seed([event({ accountId: 'acme', at, resourceName: `late-${found.length}` })]);
    }
    expect(found.sort()).toEqual(many.map(({ accountId, resourceName }) => `${accountId} ${resourceName}`).sort());
  });
});

describe('the list of events', () => {
  const OVERRIDDEN = new PriceBook({
    ...DEFAULT_PRICE_BOOK_FILE,
    version: 7,
    overrides: [
      {
        accountId: 'acme|west',
        billingDimension: 'sandbox_compute_runtime_gbs',
        effectiveFrom: '2025-06-01T00:00:00Z',
        amount: '3.5',
        per: '1000',
      },
    ],
  });
  const ACCOUNT = 'itemized';
  const of = (sketch: EventSketch) => event({ accountId: ACCOUNT, ...sketch });
  const id = (index: number) => `018f0000-0000-7000-8000-${String(index).padStart(12, '0')}`;

  const keys = new Map<string, string>();
  beforeAll(async () => {
    await registerPriceBook(database.shards, DEFAULT_PRICE_BOOK);
    await registerPriceBook(database.shards, OVERRIDDEN);
    // Merges would remove what the histories show.
    await onEachShard(database.shards.all, (shard) => execute(shard, 'SYSTEM STOP MERGES usage_events'));
    for (const account of [ACCOUNT, 'acme|west']) keys.set(account, await api.key(account));
    const late = { eventId: id(1), at: '2025-10-01T10:59:59.999Z', resourceName: 'late', usage: '3', cost: '3' };
    await api.seed([
      of({ eventId: id(3), at: '2025-10-01T11:00:00Z', resourceUuid: 'box', usage: '0.5', cost: '0.00000575' }),
      of({ eventId: id(2), at: '2025-10-01T10:00:00Z', usage: '2', cost: '2' }),
      of({ ...late, usage: '1', cost: '1' }),
      of({ eventId: id(4), at: '2025-10-01T12:00:00Z', usage: '4', cost: '4' }),
      of({ eventId: id(5), at: '2025-10-02T00:00:00Z' }),
      of({ eventId: id(1), accountId: 'another' }),
      of({ eventId: id(6), accountId: 'acme|west', usage: '2000', cost: '7', priceBook: 7 }),
    ]);
    // A duplicate, a correction, a second price and a void. ClickHouse keeps only the last of one insert, so each has its own.
    const later = [
      of({ ...late, usage: '1', cost: '1' }),
      of({ ...late, usage: '2', cost: '2', revision: 1 }),
      of({ ...late, revision: 1, priceRevision: 1, priceBook: 9 }),
      of({ eventId: id(4), at: '2025-10-01T12:00:00Z', usage: '4', cost: '4', revision: 1, voided: true }),
    ];
    for (const one of later) await api.seed([one]);
  });
  function path(account: string, query: Query | string): string {
    return `/v0/accounts/${encodeURIComponent(account)}/events?${new URLSearchParams(query)}`;
  }

  async function read(account: string, query: Query) {
    const { status, text } = await api.request(path(account, query), bearer(keys.get(account) ?? ''));
    if (status !== 200) throw new Error(`${status}: ${text}`);
    return eventPageSchema.parse(readExactJson(text));
  }

  /** Reads pages of one event. */
  async function idsInPages(account: string): Promise<string[]> {
    const pages = await allPages((cursor) => read(account, { ...DAY, limit: '1', cursor }));
    return pages.flatMap(({ data }) => data.map(({ eventId }) => eventId));
  }

  it('the list of events contains each event of the window once, in its newest revision, by hour and then by id', async () => {
    const { data, meta } = await read(ACCOUNT, DAY);
    expect(data.map(({ eventId, cost, revision }) => [eventId, cost, revision])).toEqual([
      [id(1), '3', 1],
      [id(2), '2', 0],
      [id(3), '0.00000575', 0],
    ]);
    expect(meta).toEqual({ hasMore: false, nextCursor: '' });
  });

  it('the list of events adds up to the metrics of the same window and filters', async () => {
    for (const filter of [
      {},
      { resourceName: 'late' },
      { withoutResourceUuid: 'true' },
      { excludeResourceName: 'late' },
    ]) {
      const window = { startTime: '2025-10-01T10:00:00.001Z', endTime: '2025-10-01T11:00:00.001Z' };
      const { data } = await read(ACCOUNT, { ...window, ...filter });
      const figure = await readMetrics(api, ACCOUNT, keys.get(ACCOUNT) ?? '', { ...window, ...filter });
      expect(data.reduce((sum, { cost }) => sum + Number(cost), 0)).toBe(figure.summary.totalCost);
    }
  });

  it('the list of events shows the replaced revisions of an event, newest first, and a duplicate once', async () => {
    const { data } = await read(ACCOUNT, { ...DAY, resourceName: 'late' });
    const [late] = data;
    expect([late?.revision, late?.priceRevision, late?.priceBook, late?.usage]).toEqual([1, 1, 9, '3']);
    expect(
      late?.history.map(({ revision, priceRevision, usage, cost }) => [revision, priceRevision, usage, cost]),
    ).toEqual([
      [1, 0, '2', '2'],
      [0, 0, '1', '1'],
    ]);
  });

  it('the list of events shows the price in force, and no price if the price book is not registered', async () => {
    const [late, other] = (await read(ACCOUNT, DAY)).data;
    expect([late?.price, other?.price]).toEqual([
      undefined,
      { amount: '0.0000115', per: '1', effectiveFrom: '1970-01-01T00:00:00Z' },
    ]);
    const { data } = await read('acme|west', DAY);
    expect(data.map(({ price, priceBook }) => [price, priceBook])).toEqual([
      [{ amount: '3.5', per: '1000', effectiveFrom: '2025-06-01T00:00:00Z' }, 7],
    ]);
  });

  it('the list of events contains voided events only if they are requested', async () => {
    const { data } = await read(ACCOUNT, { ...DAY, includeVoided: 'true' });
    expect(data.map(({ eventId, voided }) => [eventId, voided])).toEqual([
      [id(1), false],
      [id(2), false],
      [id(3), false],
      [id(4), true],
    ]);
    expect(data[3]?.history.map(({ voided, cost }) => [voided, cost])).toEqual([[false, '4']]);
  });

  it('the list of events comes in pages that contain every event once, even if an hour spans two pages', async () => {
    expect(await idsInPages(ACCOUNT)).toEqual([id(1), id(2), id(3)]);
  });

  it('the list of events has pages for event ids of every UUID version and variant', async () => {
    const ids = ['0', '1', '9', 'f'].map((digit) => `00000000-0000-${digit}000-${digit}000-000000000001`);
    const account = uniquePrefix();
    keys.set(account, await api.key(account));
    await api.seed(ids.map((eventId) => event({ eventId, accountId: account })));
    expect(await idsInPages(account)).toEqual(ids);
  });

  it('the list of events is ordered by time or cost, in both directions, on pages that contain every event once', async () => {
    const cheapest = [id(3), id(2), id(4), id(1)];
    const corrected = { ...DAY, includeVoided: 'true', limit: '1' };
    await api.seed([of({ eventId: id(4), at: '2025-10-01T12:00:00Z', cost: '2', revision: 2, voided: true })]);
    for (const [query, ids] of [
      [{}, [id(1), id(2), id(3), id(4)]],
      [{ order: 'desc' }, [id(4), id(3), id(2), id(1)]],
      [{ orderBy: 'cost' }, cheapest],
      [{ orderBy: 'cost', order: 'desc' }, [...cheapest].reverse()],
    ] as const) {
      const pages = await allPages((cursor) => read(ACCOUNT, { ...corrected, ...query, cursor }));
      expect(pages.map(({ data }) => data.map(({ eventId }) => eventId))).toEqual(ids.map((each) => [each]));
    }
  });

  it('the list of events rejects the cursor of another query or order', async () => {
    const { meta } = await read(ACCOUNT, { ...DAY, limit: '1' });
    for (const other of [{ resourceName: 'late' }, { orderBy: 'cost' }, { order: 'desc' }]) {
      const foreign = { ...DAY, limit: '1', cursor: meta.nextCursor, ...other };
      const response = await api.request(path(ACCOUNT, foreign), bearer(keys.get(ACCOUNT) ?? ''));
      expect([response.status, errorOf(response).error]).toEqual([400, 'invalid_cursor']);
    }
  });

  it('the list of events by cost rejects a window with too many events, which the list by time reads in parts', async () => {
    const account = uniquePrefix();
    const key = await api.key(account);
    await execute(
      database.warehouse,
      `INSERT INTO usage_events (account_id, event_id, timestamp, billing_dimension)
       SELECT '${account}', toUUID(concat('018f0000-0000-7000-8000-', leftPad(toString(number), 12, '0'))),
         toDateTime('2025-10-01 00:00:00', 'UTC'), 'volume_storage_gbs'
       FROM numbers(${MAX_EVENTS_BY_COST + 1})`,
    );
    const filtered = { ...DAY, resourceName: 'none' };
    const rejected = await api.request(path(account, { ...filtered, orderBy: 'cost' }), bearer(key));
    expect(rejected.status).toBe(400);
    expect(errorOf(rejected)).toMatchObject({
      error: 'invalid_parameter',
      details: [{ parameter: 'orderBy', message: expect.stringContaining('more than 1,000,000 stored revisions') }],
    });
    expect((await api.request(path(account, filtered), bearer(key))).body).toMatchObject({ data: [] });
  });
});

it('the list of accounts of an operator reads usage once a minute, and keeps the last list while ClickHouse fails', async () => {
  let statements = 0;
  const outage = new AbortController();
  const observe = (name: string) => {
    if (name === 'read_accounts') statements += 1;
    return () => undefined;
  };
  const warehouse = createWarehouse({ ...database.options, observe });
  const own = await startApi({ warehouse: warehouse.within({ signal: outage.signal }) });
  const operator = await own.key(undefined, 'operator');
  const [first, second, registered] = [uniquePrefix(), uniquePrefix(), uniquePrefix()];
  const listed = async () => {
    const { status, text } = await own.request('/v0/accounts', bearer(operator));
    return [status, ...[first, second, registered].filter((account) => text.includes(`"${account}"`))];
  };
  try {
    await api.seed([event({ accountId: first })]);
    expect(await Promise.all([listed(), listed()])).toEqual([
      [200, first],
      [200, first],
    ]);
    await api.seed([event({ accountId: second })]);
    expect(await listed()).toEqual([200, first]);
    expect(statements).toBe(1);
    own.clock.now = new Date(NOW.getTime() + 60_000);
    expect(await listed()).toEqual([200, first, second]);

    outage.abort(new Error('ClickHouse is away'));
    own.clock.now = new Date(NOW.getTime() + 120_000);
    await own.key(registered, 'member');
    expect(await listed()).toEqual([200, first, second, registered]);
    expect(own.log).toContainEqual(expect.objectContaining({ event: 'accounts_not_read', level: 40 }));
  } finally {
    await own.stop();
    await warehouse.close();
  }
});
