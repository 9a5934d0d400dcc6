import { expect, it } from '@jest/globals';
import { changeFrom, decimalText } from '@meterline/catalog/plain';
import type { FilterQuery } from '@meterline/client';
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
  toneOf,
  unitPriceText,
  valueLabel,
} from './texts.js';

const GB_HOUR = quantityOf('agent_compute_runtime_gbs');

it.each([
  ['0.0000123', '$0.000012'],
  ['-3.2', '−$3.20'],
])('%s USD is shown as %s, so that tiny amounts stay visible', (amount, text) => {
  expect(amountText(decimalText(amount), undefined)).toBe(text);
});

it('a negative usage has a minus sign, and its unit keeps the hyphen', () => {
  expect(amountText(decimalText('-4444416'), GB_HOUR)).toBe('−1,234.56 GB-h');
});

it('exact amounts have every digit, and usage is in the unit of the API', () => {
  expect(exactText(decimalText('-1234.567890123456'), undefined)).toBe('−$1,234.567890123456');
  expect(exactText(decimalText('4444416.5'), GB_HOUR)).toBe('4,444,416.5 GB-s');
});

it('a difference has a sign in money and in percent', () => {
  const [less, more] = [decimalText('1'), decimalText('1.5')];
  const changes = [changeFrom(less, more), changeFrom(more, less)];
  expect(changes.map((change) => differenceText(change, undefined))).toEqual(['+$0.50', '−$0.50']);
  expect(changes.map(changePercentText)).toEqual(['+50.0%', '−33.3%']);
});

it.each([
  ['100', '100.01', 'same', '0.0%'],
  ['100', '99.99', 'same', '0.0%'],
  ['100', '99.9', 'down', '−0.1%'],
  ['0', '0.01', 'up', 'new'],
])(
  'a change from %s to %s counts as %s (%s), because a change that is rounded to 0.0%% is neutral',
  (from, to, tone, text) => {
    const change = changeFrom(decimalText(from), decimalText(to));
    expect([toneOf(change), changePercentText(change)]).toEqual([tone, text]);
  },
);

it.each([
  [0, undefined, '$0'],
  [1_200, undefined, '$1.2K'],
  [0.000002, undefined, '$0.000002'],
  [0.30000000000000004, undefined, '$0.3'],
  [150e6, GB_HOUR, '150M'],
  [0, GB_HOUR, '0'],
] as const)('the axis labels %s (unit: %s) as %s', (value, unit, text) => {
  expect(axisText(value, unit)).toBe(text);
});

it.each([
  [['agent'], false, 'Agent'],
  [['agent', 'job'], false, '2 values'],
  [['job'], true, 'all but Job'],
])('a filter of %j (excluded: %s) is shown as %s', (values, isExcluded, text) => {
  expect(filterText('resourceType', { values, isExcluded })).toBe(text);
});

it.each<[FilterQuery, string]>([
  [{ resourceType: ['agent', 'job'], withoutResourceUuid: true }, 'Agent or Job · Instance: no instance ID'],
  [
    { excludeResourceType: ['agent', 'job'], excludeWithoutResourceUuid: true },
    'all but Agent and Job · Instance: all but no instance ID',
  ],
])('the scope text describes the filters %j and the window', (filters, text) => {
  const window = { startTime: '2025-10-01T00:00:00Z', endTime: '2025-11-01T00:00:00Z' };
  expect(scopeText({ ...window, ...filters })).toBe(`1 Oct – 31 Oct 2025 · Resource type: ${text}`);
});

it('a share is a number from 0 to 1, and 0 if the whole is zero', () => {
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
] as const)('%s with cost %s and usage %s has the average price %s', (dimension, cost, usage, text) => {
  expect(unitPriceText(decimalText(cost), decimalText(usage), quantityOf(dimension))).toBe(text);
});

it('there is no average price without usage', () => {
  expect(unitPriceText(decimalText('0'), decimalText('0'), quantityOf('volume_storage_gbs'))).toBeUndefined();
});

it('several dimensions share the finer quantity, and have none if their units differ', () => {
  expect(commonQuantity(['volume_storage_gbs'])?.name).toBe('GB-month');
  expect(commonQuantity(['sandbox_compute_runtime_gbs', 'sandbox_image_storage_gbs'])?.name).toBe('GB-h');
  expect(commonQuantity(['agent_compute_runtime_gbs', 'agent_async_requests_count'])).toBeUndefined();
});

it.each([
  ['resourceType', 'mcp_server', 'MCP server'],
  ['billingDimension', 'mcp_server_compute_runtime_gbs', 'MCP server compute'],
  ['billingDimension', 'agent_async_requests_count', 'Agent async requests'],
  ['resourceUuid', '', 'no instance ID'],
  ['resourceName', 'my_agent_gbs', 'my_agent_gbs'],
] as const)('the %s %j has the label %s', (field, value, label) => {
  expect(valueLabel(field, value)).toBe(label);
});
