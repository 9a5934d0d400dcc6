/** Reads metrics from events and rollup rows, and stores results for later pages. Pages as readers see them: test/contract. */
import { randomUUID } from 'node:crypto';
import { beforeAll, describe, expect, it } from '@jest/globals';
import { MS_PER_DAY, MS_PER_HOUR } from '@meterline/catalog';
import { z } from 'zod';
import { pricedEvent } from '../../../../test/harness/events.js';
import { execute, storeEvents } from '../../../../test/harness/stack.js';
import { testDatabase } from '../../../../test/harness/test-database.js';
import type { Accounts } from '../accounts.js';
import type { PricedEvent } from '../events/event-rows.js';
import { insertUsageEvents } from '../events/usage-events.js';
import { readDirtyHours, readMarkedHours } from '../rollups/dirty-hours.js';
import { sealNext } from '../rollups/maintenance.js';
import { NO_ROLLUPS } from '../rollups/watermarks.js';
import {
  readMetrics,
  readStoredMetrics,
  STORED_METRICS,
  type StoredPage,
  type StoredResult,
  storeMetrics,
} from './read.js';
import type { MetricsQuery, SnapshotMark } from './statement.js';

const START = Date.UTC(2025, 9, 1);

describe('results about several accounts, and windows of any years', () => {
  const DAYS = 40;
  const SEALED = { hourly: START + DAYS * MS_PER_DAY, daily: START + DAYS * MS_PER_DAY };
  const WINDOW = { startTime: START + 5 * MS_PER_HOUR, endTime: SEALED.daily };
  /** The last has a name of 1,024 bytes. */
  const NAMES = ['acme', "it's\\", 'zeta', '😀'.repeat(256)];

  /** Events of an account, one every few hours, with several names and a cost of its own each. */
  function used(accountId: string, first: number, every: number): PricedEvent[] {
    const count = Math.floor((DAYS * 24 - first) / every);
    return Array.from({ length: count }, (_, index) =>
      pricedEvent({
        accountId,
        timestamp: START + (first + index * every) * MS_PER_HOUR,
        workspace: `w${index % 3}`,
        resourceName: `${accountId.slice(0, 4)} ${index % 5}`,
        cost: BigInt(index * 7 + accountId.length),
      }),
    );
  }

  const database = testDatabase();
  beforeAll(async () => {
    await storeEvents(
      database.warehouse,
      NAMES.flatMap((name, index) => used(name, index, 3)),
    );
    // An account with nothing but voids: its hours and days have rollup rows, and it is in no result.
    await storeEvents(database.warehouse, [
      pricedEvent({ accountId: 'all void', timestamp: START + 3 * MS_PER_DAY, voided: true }),
    ]);
    while (await sealNext(database.shards.all, SEALED.hourly));
    // Late, in other hours of each.
    await storeEvents(
      database.warehouse,
      NAMES.flatMap((name, index) => used(name, 30 + 7 * index, 160 + index)),
    );
  });

  const QUERY = { window: WINDOW, filters: {}, limit: 1_000 } as const;
  type Requested = Partial<MetricsQuery> & { readonly accounts: Accounts };

  /** Reads from rollup rows where these may be read. */
  async function ask(requested: Requested) {
    const dirtyHours = await readDirtyHours(database.warehouse, requested.accounts, WINDOW);
    const rollups = { ...SEALED, dirtyHours };
    return readMetrics(database.warehouse, { ...QUERY, resolution: 'daily', groupBy: [], rollups, ...requested });
  }

  /** Queries each account alone. @returns the groups of all, with their account */
  async function each(names: readonly string[], requested: Omit<Requested, 'accounts'>) {
    const responses = await Promise.all(
      names.map(async (account) => {
        const { groups } = await ask({ ...requested, accounts: [account] });
        return groups.map((group) => ({ ...group, values: { account, ...group.values } }));
      }),
    );
    return responses.flat();
  }

  const inOrder = (groups: readonly { readonly values: object }[]) =>
    groups.map((group) => JSON.stringify(group)).sort();

  it.each(['hourly', 'daily', 'monthly'] as const)(
    'a result about several accounts has the groups of each account, in %s buckets',
    async (resolution) => {
      const window = resolution === 'hourly' ? { ...WINDOW, endTime: WINDOW.startTime + 7 * MS_PER_DAY } : WINDOW;
      for (const groupBy of [[], ['workspace'], ['resource_name']] as const) {
        const requested = { resolution, window };
        const { groups } = await ask({ ...requested, accounts: 'all', groupBy: ['account', ...groupBy] });
        expect(inOrder(groups)).toEqual(inOrder(await each(NAMES, { ...requested, groupBy })));
      }
    },
  );

  it('a result about no account is empty', async () => {
    expect(await ask({ accounts: [] })).toMatchObject({ totals: { cost: '0' }, totalGroups: 1 });
    expect(await ask({ accounts: [], groupBy: ['account'] })).toMatchObject({ groups: [] });
  });

  it('dirty hours are listed with their accounts, or are covered by windows if the list would be too long', async () => {
    const short = NAMES.slice(0, 3);
    const listed = await readMarkedHours(database.warehouse, short, WINDOW);
    expect(new Set(listed.map(({ accountId }) => accountId))).toEqual(new Set(short));
    expect(listed).toEqual([...listed].sort((one, other) => one.bucket - other.bucket));
    expect(await readDirtyHours(database.warehouse, short, WINDOW)).toEqual(listed);

    const late = NAMES.flatMap((name) => used(name, 11, name.length > 9 ? 8 : 1));
    await storeEvents(database.warehouse, late);
    expect(await readDirtyHours(database.warehouse, ['acme'], WINDOW)).toHaveLength(DAYS * 24 - 11);
    // Too many hours, and names that are too long.
    for (const accounts of ['all', NAMES.slice(2)] as const) {
      const windows = [{ startTime: START + 11 * MS_PER_HOUR, endTime: WINDOW.endTime }];
      expect(await readDirtyHours(database.warehouse, accounts, WINDOW)).toEqual({ windows });
      const { groups } = await ask({ accounts, groupBy: ['account'] });
      expect(inOrder(groups)).toEqual(inOrder(await each(accounts === 'all' ? NAMES : accounts, {})));
    }
  });

  /** The result about a new account that has only this event. Used last, because a query of all accounts has the event too. */
  async function readOf(timestamp: number, window: MetricsQuery['window']) {
    const accountId = randomUUID();
    await insertUsageEvents(database.warehouse, [pricedEvent({ accountId, timestamp })]);
    const query = { ...QUERY, accounts: [accountId], resolution: 'monthly', groupBy: [] } as const;
    return readMetrics(database.warehouse, { ...query, window });
  }

  it.each([
    ['1970-01-01T00:00:00Z', '2100-01-01T00:00:00Z', 130 * 12 - 1],
    ['0001-01-01T00:00:00Z', '9999-12-31T23:59:59.999Z', 2099 * 12 - 1],
    ['1969-12-15T00:00:00Z', '2200-01-01T00:00:00Z', 130 * 12],
  ])('an event is in its bucket in a window from %s to %s', async (startTime, endTime, bucket) => {
    const window = { startTime: Date.parse(startTime), endTime: Date.parse(endTime) };
    const { groups } = await readOf(Date.UTC(2100, 0) - 1, window);
    expect(groups[0]?.series).toEqual({ buckets: [bucket], costs: ['1'], usages: ['1'] });
  });

  it.each([
    [Date.UTC(1950, 0), 0],
    [Date.UTC(2500, 0), Date.UTC(2600, 0)],
  ])('a window outside the years of events is empty: %i to %i', async (startTime, endTime) => {
    const { groups } = await readOf(0, { startTime, endTime });
    expect(groups).toMatchObject([{ cost: '0', series: { buckets: [] } }]);
  });
});

describe('stored results', () => {
  const GROUPS = 2_500;
  /** A query reads rollup rows alone. */
  const SEALED = { hourly: START + 86_400_000, daily: START + 86_400_000, dirtyHours: [] };
  const QUERY: MetricsQuery = {
    accounts: ['acme'],
    window: { startTime: START, endTime: START + 86_400_000 },
    filters: {},
    resolution: 'daily',
    groupBy: ['resource_uuid'],
    limit: 100,
    rollups: SEALED,
  };
  const RESPONSE = { owner: 'acme', resultId: '0190c5e4-7b1a-4def-8abc-0123456789ab' };
  /** As in the migration of result_pages. */
  const INDEX_GRANULARITY = 256;

  const database = testDatabase();
  let mark: SnapshotMark;
  beforeAll(async () => {
    const events = Array.from({ length: GROUPS }, (_, index) => event('acme', index));
    await insertUsageEvents(database.warehouse, [...events, event('another', 0), event('another', GROUPS)]);
    while (await sealNext(database.shards.all, SEALED.hourly));
    mark = (await readMetrics(database.warehouse, QUERY)).mark;
    await storeMetrics(database.warehouse, RESPONSE, QUERY, mark.digest);
  });

  function event(accountId: string, index: number): PricedEvent {
    const eventId = `0190c5e4-7b1a-7def-8abc-${index.toString(16).padStart(12, '0')}`;
    return pricedEvent({
      eventId,
      accountId,
      resourceUuid: `box-${index}`,
      timestamp: START,
      cost: BigInt(GROUPS - index),
    });
  }

  /** Rows that the server read for a page, from the summary of its response. */
  async function rowsRead(after: number): Promise<number> {
    const { url, database: name } = database.options;
    const parameters = { owner: RESPONSE.owner, result_id: RESPONSE.resultId, after, last: after + 100 };
    const search = new URLSearchParams({ database: name, wait_end_of_query: '1' });
    for (const [parameter, value] of Object.entries(parameters)) search.set(`param_${parameter}`, String(value));
    const response = await fetch(`${url}/?${search}`, { method: 'POST', body: STORED_METRICS });
    await response.text();
    const header = z.string().parse(response.headers.get('x-clickhouse-summary'));
    return z.object({ read_rows: z.coerce.number() }).parse(JSON.parse(header)).read_rows;
  }

  /** The page after rank `after`. */
  function stored(after: number, limit: number, response: StoredResult = RESPONSE) {
    return readStoredMetrics(database.warehouse, response, { after, limit, groupBy: QUERY.groupBy });
  }

  function names(page: StoredPage | undefined) {
    return page?.groups.map(({ values }) => values.resource_uuid);
  }

  it('a stored result has every group under its rank, of its account alone', async () => {
    const live = await readMetrics(database.warehouse, { ...QUERY, limit: GROUPS, rollups: NO_ROLLUPS });
    const { groups, totals, totalGroups } = live;
    expect([totalGroups, totals.usage, live.mark.digest]).toEqual([GROUPS, String(GROUPS), mark.digest]);
    expect(await stored(0, GROUPS)).toEqual({ groups, totals, totalGroups });
    expect(names(await stored(1_234, 3))).toEqual(['box-1234', 'box-1235', 'box-1236']);
    expect(await stored(0, 3, { ...RESPONSE, owner: 'another' })).toBeUndefined();
  });

  it.each([2, 25])('page %d of a stored result reads only the rows around it', async (page) => {
    expect(await rowsRead((page - 1) * 100)).toBeLessThanOrEqual(3 * INDEX_GRANULARITY);
  });

  it('a result that is stored twice has every group once, and is not stored under the digest of another result', async () => {
    const twice = { ...RESPONSE, resultId: '0190c5e4-7b1a-4def-8abc-0123456789ac' };
    for (let time = 0; time < 2; time += 1) await storeMetrics(database.warehouse, twice, QUERY, mark.digest);
    expect(names(await stored(99, 2, twice))).toEqual(['box-99', 'box-100']);
    const other = { ...RESPONSE, resultId: '0190c5e4-7b1a-4def-8abc-0123456789ad' };
    await storeMetrics(database.warehouse, other, QUERY, '1');
    expect(await stored(0, 1, other)).toBeUndefined();
  });

  it('a stored result is not found where some of its rows are lost', async () => {
    await execute(database.warehouse, 'ALTER TABLE result_pages DELETE WHERE rank BETWEEN 2050 AND 2060');
    expect(await stored(2_000, 100)).toBeUndefined();
    expect(names(await stored(2_100, 100))).toHaveLength(100);
    expect(names(await stored(GROUPS - 7, 100))).toHaveLength(7);
  });

  it('a result as of a block leaves out later inserts, and has another digest when merges have dropped its rows', async () => {
    const open: MetricsQuery = { ...QUERY, accounts: ['open'], rollups: NO_ROLLUPS };
    const insert = (...events: PricedEvent[]) => insertUsageEvents(database.warehouse, events);
    const read = async (asOf?: string) => {
      const result = await readMetrics(database.warehouse, { ...open, ...(asOf !== undefined && { asOf }) });
      const boxes = result.groups.map(({ values }) => values.resource_uuid);
      return { boxes, digest: result.mark.digest, block: result.mark.newest_block };
    };
    await execute(database.warehouse, 'SYSTEM STOP MERGES usage_events');
    await insert(event('open', 1), event('open', 2));
    const first = await read();
    await insert(event('open', 3), { ...event('open', 1), revision: 1, voided: true });
    await insert({ ...event('open', 2), revision: 1, cost: 7n });
    expect(await read(first.block)).toEqual(first);
    const now = await read();
    expect([first.boxes, now.boxes]).toEqual([
      ['box-1', 'box-2'],
      ['box-3', 'box-2'],
    ]);
    expect(now.digest).not.toBe(first.digest);
    expect(await read(now.block)).toEqual(now);
    await insert({ ...event('open', 3), revision: 1, cost: 9n });
    await execute(database.warehouse, 'SYSTEM START MERGES usage_events');
    await execute(database.warehouse, 'OPTIMIZE TABLE usage_events FINAL');
    expect((await read(now.block)).digest).not.toBe(now.digest);
  });

  it('a result has another digest when a group has another cost, usage, key, bucket or enriched value', async () => {
    const digests = new Set<string>();
    const keys: Partial<PricedEvent>[] = [{}, { cost: 1n }, { usage: 1n }, { resourceUuid: 'renamed' }];
    const shown: Partial<PricedEvent>[] = [{ workspace: 'another' }, { timestamp: START + MS_PER_HOUR }];
    for (const [index, change] of [...keys, ...shown].entries()) {
      const account = `changed ${index}`;
      await insertUsageEvents(database.warehouse, [{ ...event(account, 1), ...change }]);
      const requested: MetricsQuery = { ...QUERY, accounts: [account], resolution: 'hourly', rollups: NO_ROLLUPS };
      digests.add((await readMetrics(database.warehouse, requested)).mark.digest);
    }
    expect(digests.size).toBe(6);
  });
});
