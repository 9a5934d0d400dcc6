import { describe, expect, it } from '@jest/globals';
import { decimalText } from '@meterline/catalog';
import { only } from '../view/filters.js';
import { FilterProblem, filterQuery, readNames } from './filter-query.js';

const allBut = (...values: string[]) => ({ values, isExcluded: true });

describe('filters as the API takes them', () => {
  it('have one value, or several of which one is enough', () => {
    expect(filterQuery({ workspace: only('main'), resourceName: only('a', 'b') }, {})).toEqual({
      workspace: 'main',
      resourceName: ['a', 'b'],
    });
  });

  it('exclude words of the catalog by all other words', () => {
    expect(filterQuery({ resourceType: allBut('sandbox', 'agent', 'job', 'volume') }, {})).toEqual({
      resourceType: ['mcp_server', 'custom_domain'],
    });
    // The other of the type.
    const filters = { resourceType: only('job'), billingDimension: allBut('job_image_storage_gbs') };
    expect(filterQuery(filters, {})).toEqual({ resourceType: 'job', billingDimension: 'job_compute_runtime_gbs' });
  });

  it('exclude names by all other names', () => {
    const known = { resourceName: ['a', 'b', 'c'] };
    expect(filterQuery({ resourceName: allBut('b') }, known)).toEqual({ resourceName: ['a', 'c'] });
  });

  it('ask for what has no instance by its own parameter', () => {
    expect(filterQuery({ resourceUuid: only('') }, {})).toEqual({ withoutResourceUuid: true });
    expect(filterQuery({ resourceUuid: only('', 'u') }, {})).toEqual({ withoutResourceUuid: true, resourceUuid: 'u' });
    expect(filterQuery({ resourceUuid: allBut('') }, { resourceUuid: ['', 'u', 'v'] })).toEqual({
      resourceUuid: ['u', 'v'],
    });
  });

  it('are not asked when nothing is left, or more than the API takes', () => {
    expect(() => filterQuery({ resourceName: allBut('a') }, { resourceName: ['a'] })).toThrow(FilterProblem);
    const names = Array.from({ length: 102 }, (_, index) => `n${index}`);
    expect(() => filterQuery({ resourceName: allBut('n0') }, { resourceName: names })).toThrow(
      'The API takes 100 values in all filters together, and these filters mean more.',
    );
    expect(filterQuery({ resourceName: allBut('n0', 'n1') }, { resourceName: names }).resourceName).toHaveLength(100);
  });
});

describe('the names that a filter excludes from', () => {
  it.each([
    ['are all read, if the API takes the others', 100, 1, 1],
    ['are read until there are more than the API takes', 100_000, 1, 2],
    ['are read until there are more than the API takes besides those excluded', 100_000, 150, 3],
  ])('%s', async (_what, names, excluded, pagesRead) => {
    const name = (index: number) => `n${index}`;
    let read = 0;
    const pages = (async function* () {
      for (let from = 0; from < names; from += 100) {
        read += 1;
        const data = Array.from({ length: 100 }, (_, index) => ({
          resourceName: name(from + index),
          summary: { cost: decimalText('1') },
          timeseries: [],
        }));
        yield { data };
      }
    })();
    const filter = allBut(...Array.from({ length: excluded }, (_, index) => name(index)));
    expect(await readNames(pages, 'resourceName', filter)).toHaveLength(100 * pagesRead);
    expect(read).toBe(pagesRead);
  });
});
