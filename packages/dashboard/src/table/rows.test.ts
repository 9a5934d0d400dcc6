import { expect, it } from '@jest/globals';
import { decimalText } from '@meterline/catalog/plain';
import { quantityOf } from '../format/texts.js';
import { DEFAULT_VIEW, type View } from '../view/view.js';
import { isOnFirstPage, previousCostIn, type Row, rowOf, searchRows, sortRows } from './rows.js';

const row = (label: string, cost: string, usage?: string, previous?: string): Row => ({
  key: label,
  labels: [label],
  entry: { summary: { cost: decimalText(cost) }, timeseries: [] },
  cost: decimalText(cost),
  usage: usage === undefined ? undefined : decimalText(usage),
  unit: undefined,
  previousCost: previous === undefined ? undefined : decimalText(previous),
});
// In the order of the API, by cost.
const rows = [row('box 10', '10', '1', '10'), row('box 2', '9.5', '20', '1'), row('Alpha', '0.000001', undefined, '3')];
const names = (sorted: readonly Row[]) => sorted.map(({ key }) => key);

it.each([
  ['cost', true, ['box 10', 'box 2', 'Alpha']],
  ['cost', false, ['Alpha', 'box 2', 'box 10']],
  ['name', false, ['Alpha', 'box 2', 'box 10']],
  ['usage', true, ['box 2', 'box 10', 'Alpha']],
  ['change', true, ['box 2', 'box 10', 'Alpha']],
  ['change', false, ['Alpha', 'box 10', 'box 2']],
] as const)('rows sort by %s (descending: %s)', (column, descending, expected) => {
  expect(names(sortRows(rows, { column, descending }))).toEqual(expected);
});

it('rows sort by usage within each unit', () => {
  const amounts = [
    ['volume', '5', 'volume_storage_gbs'],
    ['few', '6', 'agent_async_requests_count'],
    ['many', '7000000', 'agent_async_requests_count'],
    ['sandbox', '9000', 'sandbox_compute_runtime_gbs'],
  ] as const;
  const mixed = amounts.map(([name, usage, dimension]) => ({ ...row(name, '3', usage), unit: quantityOf(dimension) }));
  const sorted = sortRows(mixed, { column: 'usage', descending: true });
  expect(names(sorted)).toEqual(['sandbox', 'volume', 'many', 'few']);
});

it.each([true, false])(
  'rows without a previous cost come last when sorted by change (descending: %s)',
  (descending) => {
    const some = [row('unknown', '99'), ...rows];
    expect(names(sortRows(some, { column: 'change', descending })).at(-1)).toBe('unknown');
  },
);

it('a search finds rows by a part of their name, ignoring case', () => {
  expect(names(searchRows(rows, ' BOX '))).toEqual(['box 10', 'box 2']);
  expect(names(searchRows(rows, ''))).toEqual(names(rows));
  expect(searchRows(rows, 'nothing')).toEqual([]);
});

it('a search finds accounts by their name and by their ID', () => {
  const accounts = ['c-17', 'c-18'].map((account) => ({
    account,
    summary: { cost: decimalText('1') },
    timeseries: [],
  }));
  const shown = accounts.map((entry) => rowOf(entry, ['account'], new Map([['c-17', 'Globex Corp.']])));
  expect(shown.map(({ labels }) => labels)).toEqual([['Globex Corp. (c-17)'], ['c-18']]);
  expect(names(searchRows(shown, 'globex'))).toEqual(['["c-17"]']);
  expect(names(searchRows(shown, 'C-17'))).toEqual(['["c-17"]']);
});

it.each([
  [true, '0'],
  [false, undefined],
])('a group missing from the previous period (complete: %s) has the previous cost %s', (isComplete, other) => {
  const entry = { resourceName: 'box', summary: { cost: decimalText('1.5') }, timeseries: [] };
  const cost = previousCostIn({ entries: [entry], isComplete }, ['resource_name']);
  expect([cost('["box"]'), cost('["other"]')]).toEqual(['1.5', other]);
});

it.each<[boolean, Partial<View>]>([
  [true, {}],
  [true, { page: 4 }],
  [true, { compare: 'period' }],
  [false, { page: 5 }],
  [false, { search: 'x' }],
  [false, { sort: { column: 'name', descending: false } }],
])('auto-refresh is allowed: %s, for a view with %j', (is, change) => {
  expect(isOnFirstPage({ ...DEFAULT_VIEW, ...change })).toBe(is);
});
