import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { z } from 'zod';
import { createTestDatabase, execute, type TestDatabase } from '../../../../test/stack.js';
import { insertUsageEvents, type PricedEvent } from '../events/usage-events.js';
import { sealNext } from '../rollups/sealing.js';
import { NOTHING_SEALED } from '../rollups/watermarks.js';
import { readMetrics } from './read.js';
import type { MetricsQuestion } from './statement.js';
import { countStoredGroups, readStoredMetrics, STORED_METRICS, storeMetrics } from './stored-pages.js';

const START = Date.UTC(2025, 9, 1);
const GROUPS = 25_000;
/** The cells alone answer. */
const SEALED = { hourly: START + 86_400_000, daily: START + 86_400_000 };
const QUESTION: MetricsQuestion = {
  accountId: 'acme',
  window: { startTime: START, endTime: START + 86_400_000 },
  filters: {},
  resolution: 'daily',
  groupBy: ['resource_uuid'],
  limit: 100,
  sealed: SEALED,
};
const RESULT = { caller: 'client', resultId: '0190c5e4-7b1a-4def-8abc-0123456789ab' };
/** As in migration 0008. */
const INDEX_GRANULARITY = 256;

let database: TestDatabase;
beforeAll(async () => {
  database = await createTestDatabase();
  const events = Array.from({ length: GROUPS }, (_, index) => event('acme', index));
  await insertUsageEvents(database.warehouse, [...events, event('another', 0), event('another', GROUPS)]);
  while (await sealNext(database.warehouse, SEALED.hourly));
  await storeMetrics(database.warehouse, RESULT, QUESTION, GROUPS);
});
afterAll(() => database.drop());

function event(accountId: string, index: number): PricedEvent {
  return {
    eventId: `0190c5e4-7b1a-7def-8abc-${index.toString(16).padStart(12, '0')}`,
    accountId,
    workspace: 'production',
    resourceType: 'sandbox',
    resourceName: 'builder',
    resourceUuid: `box-${index}`,
    billingDimension: 'sandbox_compute_runtime_gbs',
    usage: 10n ** 9n,
    timestamp: START,
    revision: 0,
    voided: false,
    cost: BigInt(GROUPS - index),
    priceRevision: 0,
    priceBook: 0,
  };
}

/** Rows that the server touched to answer, from its own summary. */
async function rowsRead(after: number): Promise<number> {
  const { url, database: name } = database.options;
  const parameters = { caller: RESULT.caller, result_id: RESULT.resultId, after, last: after + 100 };
  const search = new URLSearchParams({ database: name, wait_end_of_query: '1' });
  for (const [parameter, value] of Object.entries(parameters)) search.set(`param_${parameter}`, String(value));
  const answer = await fetch(`${url}/?${search}`, { method: 'POST', body: STORED_METRICS });
  await answer.text();
  const header = z.string().parse(answer.headers.get('x-clickhouse-summary'));
  return z.object({ read_rows: z.coerce.number() }).parse(JSON.parse(header)).read_rows;
}

describe('a stored answer', () => {
  it('has every group under its rank', async () => {
    const page = { after: 12_345, limit: 3, groupBy: QUESTION.groupBy };
    const { groups } = await readStoredMetrics(database.warehouse, RESULT, page);
    expect(groups.map(({ values }) => values.resource_uuid)).toEqual(['box-12345', 'box-12346', 'box-12347']);
  });

  it('is what was asked for, of this account alone', async () => {
    const live = await readMetrics(database.warehouse, { ...QUESTION, limit: GROUPS, sealed: NOTHING_SEALED });
    expect(live).toMatchObject({ totalGroups: GROUPS, totals: { usage: String(GROUPS) } });
    const page = { after: 0, limit: GROUPS, groupBy: QUESTION.groupBy };
    expect(await readStoredMetrics(database.warehouse, RESULT, page)).toEqual(live);
  });

  it.each([2, 200])('costs page %d no more than the rows around it', async (page) => {
    expect(await rowsRead((page - 1) * 100)).toBeLessThanOrEqual(3 * INDEX_GRANULARITY);
  });

  it('of an earlier version, with costs for fewer buckets than usages, keeps both', async () => {
    const result = { caller: 'earlier', resultId: '0190c5e4-7b1a-4def-8abc-0123456789ad' };
    await execute(
      database.warehouse,
      `
INSERT INTO metrics_results (caller, result_id, account_id, rank, values, cost, usage, cost_series, usage_series,
                             total_cost, total_usage, total_groups)
VALUES ('earlier', '${result.resultId}', 'acme', 1, ['box'], 9, 14, ([3], [9]), ([0, 1, 3], [5, 7, 2]), 9, 14, 1)`,
    );
    const { groups } = await readStoredMetrics(database.warehouse, result, {
      after: 0,
      limit: 1,
      groupBy: QUESTION.groupBy,
    });
    expect(groups[0]?.series).toEqual({ buckets: [0, 1, 3], costs: ['0', '0', '9'], usages: ['5', '7', '2'] });
  });

  it('is known to its caller alone', async () => {
    const page = { after: 0, limit: 3, groupBy: QUESTION.groupBy };
    const foreign = { ...RESULT, caller: 'another' };
    expect((await readStoredMetrics(database.warehouse, foreign, page)).groups).toEqual([]);
    expect(await countStoredGroups(database.warehouse, 'another')).toBe(0);
    expect(await countStoredGroups(database.warehouse, 'client')).toBe(GROUPS);
  });

  it('is not stored at all when it has more groups than it may', async () => {
    const result = { caller: 'modest', resultId: '0190c5e4-7b1a-4def-8abc-0123456789ac' };
    await storeMetrics(database.warehouse, result, QUESTION, GROUPS - 1);
    expect(await countStoredGroups(database.warehouse, 'modest')).toBe(0);
  });

  it('is no answer where a part of it is lost', async () => {
    await execute(database.warehouse, 'ALTER TABLE metrics_results DELETE WHERE rank BETWEEN 20050 AND 20060');
    const page = (after: number) =>
      readStoredMetrics(database.warehouse, RESULT, { after, limit: 100, groupBy: QUESTION.groupBy });
    expect((await page(20_000)).groups).toEqual([]);
    expect((await page(20_100)).groups).toHaveLength(100);
    expect((await page(GROUPS - 7)).groups).toHaveLength(7);
  });
});
