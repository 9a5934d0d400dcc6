/** A large answer, page by page, while the events behind it go on changing. */
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import type { PricedEvent } from '@meterline/warehouse';
import { bearer, DAY, errorOf, event, metricsPath, readMetrics, startApi, type TestApi } from './fixture.js';

const GROUPS = 25_000;
const BY_UUID = { ...DAY, groupBy: 'resource_uuid', limit: '100' };
/** Whole dollars, so that sums of JSON's doubles are exact; the ranking is that of the numbers. */
const BOXES = Array.from({ length: GROUPS }, (_, index) =>
  event({ resourceUuid: uuid(index), cost: String(GROUPS - index) }),
);
const TOTAL = (GROUPS * (GROUPS + 1)) / 2;

function uuid(index: number): string {
  return `box-${String(index).padStart(5, '0')}`;
}

/** What may happen between two pages: a dearer group, a group that was shown grows, one not yet shown vanishes. */
function changesAfter(page: number): PricedEvent[] {
  const last = BOXES[GROUPS - page];
  return [
    event({ resourceUuid: `new-${page}`, cost: '1000000' }),
    event({ resourceUuid: uuid(page), cost: '500' }),
    ...(last ? [{ ...last, revision: 1, voided: true }] : []),
  ];
}

let api: TestApi;
let key: string;
beforeAll(async () => {
  api = await startApi({ maxStoredGroups: 2 * GROUPS });
  key = await api.key('acme');
  await api.seed(BOXES);
});
afterAll(() => api.stop());

describe('25,000 groups, while events keep arriving', () => {
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
    expect([pages, cost]).toEqual([250, TOTAL]);
  }, 60_000);

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
});
