/** What is stored of a result, and how its digest tells it from others. Pages as readers see them: test/contract/stored-pages. */
import { beforeAll, expect, it } from '@jest/globals';
import { MS_PER_HOUR } from '@meterline/catalog';
import { z } from 'zod';
import { pricedEvent } from '../../../../test/harness/events.js';
import { execute } from '../../../../test/harness/stack.js';
import { testDatabase } from '../../../../test/harness/test-database.js';
import type { PricedEvent } from '../events/event-rows.js';
import { insertUsageEvents } from '../events/usage-events.js';
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
const GROUPS = 25_000;
/** The rollup rows alone answer. */
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

/** Rows that the server touched to answer, from its own summary. */
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
  expect(names(await stored(12_345, 3))).toEqual(['box-12345', 'box-12346', 'box-12347']);
  expect(await stored(0, 3, { ...RESPONSE, owner: 'another' })).toBeUndefined();
});

it.each([2, 200])('page %d of a stored result costs no more than the rows around it', async (page) => {
  expect(await rowsRead((page - 1) * 100)).toBeLessThanOrEqual(3 * INDEX_GRANULARITY);
});

it('a result that is stored twice has every group once, and none under the digest of another', async () => {
  const twice = { ...RESPONSE, resultId: '0190c5e4-7b1a-4def-8abc-0123456789ac' };
  for (let time = 0; time < 2; time += 1) await storeMetrics(database.warehouse, twice, QUERY, mark.digest);
  expect(names(await stored(99, 2, twice))).toEqual(['box-99', 'box-100']);
  const other = { ...RESPONSE, resultId: '0190c5e4-7b1a-4def-8abc-0123456789ad' };
  await storeMetrics(database.warehouse, other, QUERY, '1');
  expect(await stored(0, 1, other)).toBeUndefined();
});

it('a stored result is none where a part of it is lost', async () => {
  await execute(database.warehouse, 'ALTER TABLE result_pages DELETE WHERE rank BETWEEN 20050 AND 20060');
  expect(await stored(20_000, 100)).toBeUndefined();
  expect(names(await stored(20_100, 100))).toHaveLength(100);
  expect(names(await stored(GROUPS - 7, 100))).toHaveLength(7);
});

it('a result as of a block leaves out what was inserted after it, and is another when merges have dropped what it was read from', async () => {
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

it('a result has another digest when a group has another cost, usage, key, bucket, or value that it only shows', async () => {
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
