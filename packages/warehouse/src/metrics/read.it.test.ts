/** Results about several accounts; what the oracle and the contract seldom draw: windows of any years. */
import { randomUUID } from 'node:crypto';
import { beforeAll, expect, it } from '@jest/globals';
import { MS_PER_DAY, MS_PER_HOUR } from '@meterline/catalog';
import { pricedEvent } from '../../../../test/harness/events.js';
import { storeEvents } from '../../../../test/harness/stack.js';
import { testDatabase } from '../../../../test/harness/test-database.js';
import type { Accounts } from '../accounts.js';
import type { PricedEvent } from '../events/event-rows.js';
import { insertUsageEvents } from '../events/usage-events.js';
import { readDirtyHours } from '../rollups/dirty-hours.js';
import { sealNext } from '../rollups/maintenance.js';
import { readMetrics } from './read.js';
import type { MetricsQuery } from './statement.js';

const START = Date.UTC(2025, 9, 1);
const DAYS = 40;
const SEALED = { hourly: START + DAYS * MS_PER_DAY, daily: START + DAYS * MS_PER_DAY };
const WINDOW = { startTime: START + 5 * MS_PER_HOUR, endTime: SEALED.daily };
/** The last has a name of 1,024 bytes. */
const NAMES = ['acme', "it's\\", 'zeta', '😀'.repeat(256)];

/** Events of an account in every so many hours, each with a name and a cost of its own. */
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

/** From rollup rows as far as they may be read. */
async function ask(requested: Requested) {
  const dirtyHours = await readDirtyHours(database.warehouse, requested.accounts, WINDOW);
  const rollups = { ...SEALED, dirtyHours };
  return readMetrics(database.warehouse, { ...QUERY, resolution: 'daily', groupBy: [], rollups, ...requested });
}

/** The groups of each account queried alone, as one list of groups with their account. */
async function each(names: readonly string[], requested: Omit<Requested, 'accounts'>) {
  const responses = await Promise.all(
    names.map(async (account) => {
      const { groups } = await ask({ ...requested, accounts: [account] });
      return groups.map((group) => ({ ...group, values: { account, ...group.values } }));
    }),
  );
  return responses.flat();
}

const inOrder = (groups: readonly { readonly values: object }[]) => groups.map((group) => JSON.stringify(group)).sort();

it.each(['hourly', 'daily', 'monthly'] as const)(
  'a result about several accounts has what each account has, by %s buckets',
  async (resolution) => {
    const window = resolution === 'hourly' ? { ...WINDOW, endTime: WINDOW.startTime + 7 * MS_PER_DAY } : WINDOW;
    for (const groupBy of [[], ['workspace'], ['resource_name']] as const) {
      const requested = { resolution, window };
      const { groups } = await ask({ ...requested, accounts: 'all', groupBy: ['account', ...groupBy] });
      expect(inOrder(groups)).toEqual(inOrder(await each(NAMES, { ...requested, groupBy })));
    }
  },
);

it('a result about no account is nothing', async () => {
  expect(await ask({ accounts: [] })).toMatchObject({ totals: { cost: '0' }, totalGroups: 1 });
  expect(await ask({ accounts: [], groupBy: ['account'] })).toMatchObject({ groups: [] });
});

it('a query about several accounts names the dirty hours of each while they fit a statement, and else the hours alone', async () => {
  const hoursOf = async (accounts: Accounts) => {
    const dirty = await readDirtyHours(database.warehouse, accounts, WINDOW);
    expect(dirty.map(({ bucket }) => bucket)).toEqual(dirty.map(({ bucket }) => bucket).sort((a, b) => a - b));
    return new Set(dirty.map(({ accountId }) => accountId));
  };
  const short = NAMES.slice(0, 3);
  expect(await hoursOf(short)).toEqual(new Set(short));
  expect(await hoursOf(['acme'])).toEqual(new Set([undefined]));

  const late = NAMES.flatMap((name) => used(name, 11, name.length > 9 ? 8 : 1));
  await storeEvents(database.warehouse, late);
  // Too many, and too long.
  for (const accounts of ['all', short, NAMES.slice(2)] as const) {
    expect(await hoursOf(accounts)).toEqual(new Set([undefined]));
    const { groups } = await ask({ accounts, groupBy: ['account'] });
    expect(inOrder(groups)).toEqual(inOrder(await each(accounts === 'all' ? NAMES : accounts, {})));
  }
});

/** The result about an account that has this event alone; `all` would have it as well, so this comes last. */
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
])('an event has its place in a window from %s to %s', async (startTime, endTime, bucket) => {
  const window = { startTime: Date.parse(startTime), endTime: Date.parse(endTime) };
  const { groups } = await readOf(Date.UTC(2100, 0) - 1, window);
  expect(groups[0]?.series).toEqual({ buckets: [bucket], costs: ['1'], usages: ['1'] });
});

it.each([
  [Date.UTC(1950, 0), 0],
  [Date.UTC(2500, 0), Date.UTC(2600, 0)],
])('a window that can have no events has none: %i to %i', async (startTime, endTime) => {
  const { groups } = await readOf(0, { startTime, endTime });
  expect(groups).toMatchObject([{ cost: '0', series: { buckets: [] } }]);
});
