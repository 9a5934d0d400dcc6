/** The windows that the arguments of tools mean, and the size of pages. */
import { describe, expect, it } from '@jest/globals';
import { z } from 'zod';
import { type QueryFlags, queryOf, withQuery } from '../metrics/query.js';
import { FILTER, flagsOf, nextArguments, only, WINDOW } from './arguments.js';
import { boundedPage, listPage } from './tool.js';

const NOW = new Date('2026-11-21T12:34:56.789Z');
const schema = only({ ...WINDOW, ...FILTER, compare: z.boolean().optional(), cursor: z.string().optional() });
const queryFor = (args: object) => queryOf(flagsOf<QueryFlags>(withQuery, schema.parse(args), NOW), NOW);

describe('the window', () => {
  it.each([
    [{}, '2026-10-23T00:00:00Z', '2026-11-21T12:34:56Z'],
    [{ period: 'today' }, '2026-11-21T00:00:00Z', '2026-11-21T12:34:56Z'],
    [{ period: 'yesterday' }, '2026-11-20T00:00:00Z', '2026-11-21T00:00:00Z'],
    [{ period: 'last_24_hours' }, '2026-11-20T13:00:00Z', '2026-11-21T12:34:56Z'],
    [{ period: 'last_7_days' }, '2026-11-15T00:00:00Z', '2026-11-21T12:34:56Z'],
    [{ period: 'last_30_days' }, '2026-10-23T00:00:00Z', '2026-11-21T12:34:56Z'],
    [{ period: 'last_90_days' }, '2026-08-24T00:00:00Z', '2026-11-21T12:34:56Z'],
    [{ period: 'this_month' }, '2026-11-01T00:00:00Z', '2026-11-21T12:34:56Z'],
    [{ period: 'last_month' }, '2026-10-01T00:00:00Z', '2026-11-01T00:00:00Z'],
    [{ month: '2026-02' }, '2026-02-01T00:00:00Z', '2026-03-01T00:00:00Z'],
    [{ from: '2026-10-01', to: '2026-10-02T12:00:00Z' }, '2026-10-01T00:00:00Z', '2026-10-02T12:00:00Z'],
  ])('the window of %j is from %s to %s', (args, startTime, endTime) => {
    expect(queryFor(args).sent).toMatchObject({ startTime, endTime });
  });

  it.each([
    [{ period: 'today', month: '2026-10' }, 'give only one of period, month, or from with to'],
    [{ period: 'today', to: '2026-10-01' }, 'give only one of period, month, or from with to'],
    [{ month: '2026-10', from: '2026-10-01' }, "'--month <month>' cannot be used with option '--from <time>'"],
  ])('the window of %j is an error', (args, message) => {
    expect(() => queryFor(args)).toThrow(message);
  });

  it('the next page of a window that ends now has the same window', () => {
    const { startTime, endTime } = queryFor({ period: 'today' }).sent;
    const page = { startTime: String(startTime), endTime: String(endTime) };
    const next = nextArguments({ period: 'today' }, page, { hasMore: true, nextCursor: 'next' });
    expect(queryFor({ ...next }).sent).toMatchObject({ startTime, endTime, cursor: 'next' });
    expect(() => queryFor({ period: 'today', cursor: 'next' })).toThrow('--cursor needs');
    expect(nextArguments({}, page, { hasMore: false, nextCursor: '' })).toBeUndefined();
  });
});

it('filters are parsed like the flags of the command, with any characters in their values', () => {
  const filter = ['resourceName=--all=x', 'resourceName=a,b', 'workspace!=main', 'withoutResourceUuid=true'];
  expect(queryFor({ filter }).sent).toMatchObject({
    resourceName: ['--all=x', 'a,b'],
    excludeWorkspace: ['main'],
    withoutResourceUuid: true,
  });
  expect(() => queryFor({ filter: ['resourceTyp=agent'] })).toThrow('Valid names: account, workspace, resourceType');
});

describe('pages', () => {
  const rows = (count: number, bytes: number) => Array.from({ length: count }, () => 'x'.repeat(bytes));

  it.each([
    [100, 100, 100],
    [100, 1_000, 39],
    [3, 1_000_000, 1],
    [0, 0, 0],
  ])('a page of %d rows of %d bytes is cut to %d rows', async (count, bytes, shown) => {
    const page = await boundedPage(100, (limit) => ({ data: rows(count, bytes).slice(0, limit) }));
    expect(page.data).toHaveLength(shown);
  });

  it('the pages of a list have each item once, and the last has no next page', async () => {
    const items = rows(90, 1_000).map((text, index) => `${index} ${text}`);
    const first = await listPage(items, { limit: 100, offset: 0 });
    const args = z.object({ limit: z.number(), offset: z.number() }).parse(first.nextPage);
    const second = await listPage(items, args);
    const third = await listPage(items, { ...args, offset: args.offset + second.data.length });
    expect([...first.data, ...second.data, ...third.data]).toEqual(items);
    expect([first.total, second.nextPage === undefined, third.nextPage]).toEqual([90, false, undefined]);
  });
});
