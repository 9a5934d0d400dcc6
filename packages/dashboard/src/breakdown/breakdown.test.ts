import { expect, it } from '@jest/globals';
import { changeFrom, type DecimalText, decimalText, formatScaled, sumDecimals, ZERO } from '@meterline/catalog/plain';
import type { FilterQuery, MetricsEntry, MetricsResponse } from '@meterline/client';
import fc from 'fast-check';
import {
  accumulatedBreakdown,
  type Breakdown,
  buildBreakdown,
  OTHER_KEY,
  peakBucket,
  SHOWN_GROUPS,
} from './breakdown.js';
import {
  amountText,
  axisText,
  changePercentText,
  commonQuantity,
  differenceText,
  exactText,
  filterText,
  quantityOf,
  quantityText,
  scopeText,
  shareOf,
  unitPriceText,
  valueLabel,
} from './texts.js';

const DAYS = ['2026-11-01T00:00:00Z', '2026-11-02T00:00:00Z', '2026-11-03T00:00:00Z'] as const;
const WINDOW = { startTime: Date.parse(DAYS[0]), endTime: Date.parse('2026-11-04T00:00:00Z') };

function entry(resourceName: string, costs: readonly DecimalText[]): MetricsEntry {
  return {
    resourceName,
    summary: { cost: sumDecimals(costs) },
    timeseries: DAYS.map((timestamp, index) => ({ timestamp, cost: costs[index] ?? ZERO })),
  };
}

function response(data: readonly MetricsEntry[], hasMore = false): MetricsResponse {
  return {
    startTime: DAYS[0],
    endTime: '2026-11-04T00:00:00Z',
    resolution: 'daily',
    summary: { totalCost: sumDecimals(data.map(({ summary }) => summary.cost)) },
    data: [...data],
    meta: { hasMore, nextCursor: hasMore ? 'more' : '' },
  };
}

const build = (first: MetricsResponse, whole?: MetricsResponse) =>
  buildBreakdown({ first, whole }, ['resource_name'], 'cost', WINDOW);

const bucketSum = ({ series }: Breakdown, bucket: number) =>
  sumDecimals(series.map(({ points }) => points[bucket] ?? ZERO));

const cost = fc.bigInt({ min: 0n, max: 10n ** 24n }).map((scaled) => decimalText(formatScaled(scaled, 12)));
const groups = fc.array(fc.tuple(cost, cost, cost), { minLength: 1, maxLength: 30 });

it('the breakdown adds up in every bucket and in sum, to the last digit, whatever is shown', () => {
  fc.assert(
    fc.property(groups, fc.integer({ min: 1, max: 30 }), (costs, pageSize) => {
      const entries = costs.map((each, index) => entry(`group ${index}`, each));
      const page = entries.slice(0, pageSize);
      const hasMore = page.length < entries.length;
      const total = DAYS.map((_, day) => sumDecimals(costs.map((each) => each[day] ?? ZERO)));
      const shown = build({ ...response(page, hasMore) }, hasMore ? response([entry('all', total)]) : undefined);
      expect(DAYS.map((_, day) => bucketSum(shown, day))).toEqual(total);
      expect(sumDecimals(shown.series.map((series) => series.total))).toBe(sumDecimals(total));
      expect(shown.totals).toEqual(total);
      expect(shown.total).toBe(sumDecimals(total));
    }),
  );
});

it('the breakdown shows ten groups by name, and counts the rest, which no name is confused with', () => {
  const entries = Array.from({ length: 14 }, (_, index) => entry(`group ${index}`, [decimalText('0.1')]));
  const { series } = build(response(entries));
  expect(series).toHaveLength(SHOWN_GROUPS + 1);
  expect(series.at(-1)).toMatchObject({ key: OTHER_KEY, label: '4 other groups', values: undefined, total: '0.4' });
  const named = build(response([entry('Other', [decimalText('1')])]));
  expect(named.series).toMatchObject([{ label: 'Other', values: { resourceName: 'Other' } }]);
  expect(named.series[0]?.key).not.toBe(OTHER_KEY);
});

it('the breakdown takes Other from the whole when there are more pages', () => {
  const first = response([entry('one', [decimalText('1'), ZERO, decimalText('0.25')])], true);
  const whole = response([entry('all', [decimalText('1.5'), decimalText('2'), decimalText('0.25')])]);
  expect(build(first, whole).series.at(-1)).toMatchObject({ points: ['0.5', '2', '0'], total: '2.5' });
});

it('the breakdown has all its buckets, also when there was nothing, or nothing yet', () => {
  const buckets = DAYS.map((day) => Date.parse(day));
  expect(build(response([]))).toEqual({ buckets, series: [], totals: [ZERO, ZERO, ZERO], total: ZERO });
  const one = entry('one', [decimalText('1')]);
  const cut = response([{ ...one, timeseries: one.timeseries.slice(0, 1) }]);
  expect(build(cut)).toMatchObject({ buckets, totals: ['1', '0', '0'], series: [{ points: ['1', '0', '0'] }] });
});

it('the breakdown can be cumulative, and keeps its totals', () => {
  const daily = build(response([entry('one', [decimalText('1'), decimalText('0.5'), decimalText('2')])]));
  expect(accumulatedBreakdown(daily)).toMatchObject({
    totals: ['1', '1.5', '3.5'],
    series: [{ points: ['1', '1.5', '3.5'], total: '3.5' }],
    total: '3.5',
  });
});

it('the breakdown knows its highest bucket: the first of equals, and none of nothing', () => {
  expect(peakBucket([decimalText('1'), decimalText('2'), decimalText('2')])).toBe(1);
  expect(peakBucket([ZERO, ZERO])).toBeUndefined();
});

const GB_HOUR = quantityOf('agent_compute_runtime_gbs');

it.each([
  ['0.0000123', '$0.000012'],
  ['-3.2', '−$3.20'],
])('%s of money is %s: what is tiny stays visible', (amount, text) => {
  expect(amountText(decimalText(amount), undefined)).toBe(text);
});

it('usage has its unit, whose hyphen stays', () => {
  expect(amountText(decimalText('-4444416'), GB_HOUR)).toBe('−1,234.56 GB-h');
});

it('rounded amounts have all their digits behind them, usage in the unit in which it is exact', () => {
  expect(exactText(decimalText('-1234.567890123456'), undefined)).toBe('−$1,234.567890123456');
  expect(exactText(decimalText('4444416.5'), GB_HOUR)).toBe('4,444,416.5 GB-s');
});

it('a difference has its sign', () => {
  const [less, more] = [decimalText('1'), decimalText('1.5')];
  const changes = [changeFrom(less, more), changeFrom(more, less)];
  expect(changes.map((change) => differenceText(change, undefined))).toEqual(['+$0.50', '−$0.50']);
  expect(changes.map(changePercentText)).toEqual(['+50.0%', '−33.3%']);
});

it.each([
  [0, undefined, '$0'],
  [1_200, undefined, '$1.2K'],
  [0.000002, undefined, '$0.000002'],
  [0.30000000000000004, undefined, '$0.3'],
  [150e6, GB_HOUR, '150M'],
  [0, GB_HOUR, '0'],
] as const)('%s on an axis (%s) is %s', (value, unit, text) => {
  expect(axisText(value, unit)).toBe(text);
});

it.each([
  [['agent'], false, 'Agent'],
  [['agent', 'job'], false, '2 values'],
  [['job'], true, 'all but Job'],
])('a filter of %j, excluded: %s, reads %s', (values, isExcluded, text) => {
  expect(filterText('resourceType', { values, isExcluded })).toBe(text);
});

it.each<[FilterQuery, string]>([
  [{ resourceType: ['agent', 'job'], withoutResourceUuid: true }, 'Agent or Job · Instance: no instance id'],
  [
    { excludeResourceType: ['agent', 'job'], excludeWithoutResourceUuid: true },
    'all but Agent and Job · Instance: all but no instance id',
  ],
])('filters of %j are described with their window', (filters, text) => {
  const window = { startTime: '2025-10-01T00:00:00Z', endTime: '2025-11-01T00:00:00Z' };
  expect(scopeText({ ...window, ...filters })).toBe(`1 Oct – 31 Oct 2025 · Resource type: ${text}`);
});

it('the bar of a share is between nothing and everything', () => {
  expect(['4', '0'].map((whole) => shareOf(decimalText('1'), decimalText(whole)))).toEqual([0.25, 0]);
});

it.each([
  ['agent_compute_runtime_gbs', '3600', '1 GB-h'],
  ['agent_compute_runtime_gbs', '4444.444', '1.23 GB-h'],
  ['volume_storage_gbs', '1103760000', '420 GB-month'],
  ['volume_storage_gbs', '3', '0.0000011 GB-month'],
  ['agent_async_requests_count', '12345', '12,345 events'],
  ['custom_domain_active_time_hours', '720.5', '720.5 h'],
  ['sandbox_compute_runtime_gbs', '0', '0 GB-h'],
] as const)('for %s, a usage of %s is shown as %s', (dimension, usage, text) => {
  expect(quantityText(decimalText(usage), quantityOf(dimension))).toBe(text);
});

it.each([
  ['agent_compute_runtime_gbs', '0.0414', '3600', '$0.0414 per GB-h'],
  ['volume_storage_gbs', '50.4', '1103760000', '$0.12 per GB-month'],
  ['agent_async_requests_count', '0.0000014', '7', '$0.20 per 1,000,000 events'],
  ['custom_domain_active_time_hours', '20', '730', '$20.00 per month (730 h)'],
  ['custom_domain_active_time_hours', '0', '730', '$0.00 per month (730 h)'],
  ['custom_domain_active_time_hours', '123456', '730', '$123,456.00 per month (730 h)'],
] as const)('%s that cost %s for %s is priced at %s', (dimension, cost, usage, text) => {
  expect(unitPriceText(decimalText(cost), decimalText(usage), quantityOf(dimension))).toBe(text);
});

it('usage has no price where nothing was used', () => {
  expect(unitPriceText(decimalText('0'), decimalText('0'), quantityOf('volume_storage_gbs'))).toBeUndefined();
});

it('usage of several dimensions is in the finer unit, and in none where they differ', () => {
  expect(commonQuantity(['volume_storage_gbs'])?.name).toBe('GB-month');
  expect(commonQuantity(['sandbox_compute_runtime_gbs', 'sandbox_image_storage_gbs'])?.name).toBe('GB-h');
  expect(commonQuantity(['agent_compute_runtime_gbs', 'agent_async_requests_count'])).toBeUndefined();
});

it.each([
  ['resourceType', 'mcp_server', 'MCP server'],
  ['billingDimension', 'mcp_server_compute_runtime_gbs', 'MCP server compute'],
  ['billingDimension', 'agent_async_requests_count', 'Agent async requests'],
  ['resourceUuid', '', 'no instance id'],
  ['resourceName', 'my_agent_gbs', 'my_agent_gbs'],
] as const)('the %s %j is called %s', (field, value, label) => {
  expect(valueLabel(field, value)).toBe(label);
});
