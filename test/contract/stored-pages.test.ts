/** A large answer, page by page, while the events behind it go on changing. */
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { countStoredGroups, type PricedEvent } from '@meterline/warehouse';
import { execute } from '../stack.js';
import { bearer, DAY, errorOf, event, metricsPath, readMetrics, startApi, type TestApi } from './fixture.js';

/** More than a block of ClickHouse has rows (8,192). `npm run test:full` takes 25,000. */
const GROUPS = Number(process.env.METERLINE_TEST_GROUPS ?? 10_000);
const BY_UUID = { ...DAY, groupBy: 'resource_uuid', limit: '100' };
/** Whole dollars, so that sums of JSON's doubles are exact; the ranking is that of the numbers. */
const BOXES = Array.from({ length: GROUPS }, (_, index) =>
  event({ resourceUuid: uuid(index), cost: String(GROUPS - index) }),
);
const LATER = { startTime: '2025-10-05T00:00:00Z', endTime: '2025-10-06T00:00:00Z' };
const TOTAL = (GROUPS * (GROUPS + 1)) / 2;

function uuid(index: number): string {
  return `box-${String(index).padStart(5, '0')}`;
}

/** What may happen between two pages: a more expensive group, a group that was shown grows, one not yet shown disappears. */
function changesAfter(page: number): PricedEvent[] {
  const last = BOXES[GROUPS - page];
  return [
    event({ resourceUuid: `new-${page}`, cost: '1000000' }),
    event({ resourceUuid: uuid(page), cost: '500' }),
    ...(last ? [{ ...last, revision: 1, voided: true }] : []),
  ];
}

function stored(caller: string): Promise<number> {
  return countStoredGroups(api.dependencies.warehouse, caller);
}

let api: TestApi;
let key: string;
beforeAll(async () => {
  api = await startApi({ maxStoredGroups: 2 * GROUPS });
  key = await api.key('acme');
  await api.seed(BOXES);
});
afterAll(() => api.stop());

describe(`${GROUPS} groups, while events keep arriving`, () => {
  it('come every one once, as they were for the first page, and add up to the total of every page', async () => {
    const shown: string[] = [];
    let cost = 0;
    let cursor = '';
    let pages = 0;
    do {
      const page = await readMetrics(api, 'acme', key, { ...BY_UUID, cursor });
      expect(page.summary).toEqual({ totalCost: TOTAL });
      shown.push(...page.data.map(({ resourceUuid }) => resourceUuid ?? ''));
      cost += page.data.reduce((sum, { summary }) => sum + summary.cost, 0);
      cursor = page.meta.nextCursor;
      pages += 1;
      if (pages % 10 === 1) await api.seed(changesAfter(pages));
    } while (cursor !== '');
    expect(shown).toEqual(BOXES.map(({ resourceUuid }) => resourceUuid));
    expect([pages, cost]).toEqual([GROUPS / 100, TOTAL]);
  }, 180_000);

  it('are another answer when the first page is asked for again', async () => {
    const page = await readMetrics(api, 'acme', key, BY_UUID);
    expect(page.data[0]).toMatchObject({ resourceUuid: 'new-1', summary: { cost: 1_000_000 } });
  });

  it('are refused when more would be stored than one caller may keep, and only for that caller', async () => {
    const answer = await api.request(metricsPath('acme', BY_UUID), bearer(key));
    expect(answer.status).toBe(429);
    expect(answer.headers.get('retry-after')).toMatch(/^\d+$/);
    expect(errorOf(answer)).toMatchObject({
      error: 'too_many_stored_groups',
      message: expect.stringContaining('filter, group by fewer dimensions'),
    });
    const colleague = await api.key('acme', 'admin', 'a colleague');
    expect((await readMetrics(api, 'acme', colleague, BY_UUID)).meta.hasMore).toBe(true);
  });

  it('are no obstacle to an answer that fits a page', async () => {
    const page = await readMetrics(api, 'acme', key, { ...DAY, groupBy: 'workspace' });
    expect(page.meta).toEqual({ hasMore: false, nextCursor: '' });
  });

  it('do not stand in the way of a small answer to a question of the same kind', async () => {
    await api.seed([event({ resourceUuid: 'late', at: '2025-10-05T00:00:00Z' })]);
    const page = await readMetrics(api, 'acme', key, { ...BY_UUID, ...LATER });
    expect(page.data.map(({ resourceUuid }) => resourceUuid)).toEqual(['late']);
  });

  it('are refused beyond the bound although answers to questions of their kind were small', async () => {
    const colleague = await api.key('acme', 'admin', 'one who begins small');
    await readMetrics(api, 'acme', colleague, BY_UUID);
    await api.seed([event({ resourceUuid: 'later', at: '2025-10-05T00:00:00Z' })]);
    const byBoth = { ...BY_UUID, groupBy: 'resource_name,resource_uuid', limit: '1' };
    expect((await readMetrics(api, 'acme', colleague, { ...byBoth, ...LATER })).meta.hasMore).toBe(true);
    const whole = { ...byBoth, startTime: DAY.startTime, endTime: LATER.endTime };
    expect((await api.request(metricsPath('acme', whole), bearer(colleague))).status).toBe(429);
    expect(await stored('one who begins small')).toBe(GROUPS + 2);
  });

  it('are bounded however many are asked for at once', async () => {
    const crowd = await api.key('acme', 'admin', 'a crowd');
    const ask = () => api.request(metricsPath('acme', BY_UUID), bearer(crowd));
    const statuses = (await Promise.all(Array.from({ length: 6 }, ask))).map(({ status }) => status);
    expect(new Set(statuses)).toEqual(new Set([200, 429]));
    expect(await stored('a crowd')).toBeLessThanOrEqual(2 * GROUPS);
  });

  it('are stored again as soon as older answers are gone', async () => {
    const crowded = () => api.request(metricsPath('acme', BY_UUID), bearer(key));
    expect((await crowded()).status).toBe(429);
    await execute(api.dependencies.warehouse, 'TRUNCATE TABLE metrics_results');
    expect((await crowded()).status).toBe(200);
  });
});
