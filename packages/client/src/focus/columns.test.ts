import { expect, it } from '@jest/globals';
import { decimalText } from '@meterline/catalog';
import { FOCUS_COLUMNS, type FocusCharge, focusCsvHeading, focusCsvLines } from './columns.js';

const MONTH = { startTime: Date.UTC(2025, 9), endTime: Date.UTC(2025, 10) };
const CHARGE: FocusCharge = {
  account: { id: 'acme', name: 'Acme\r\n"West"\n' },
  provider: 'Us, Inc',
  month: MONTH,
  period: { startTime: MONTH.startTime, endTime: Date.UTC(2025, 9, 2) },
  description: ' blank at both ends ',
  resourceId: 'acme/agent/x',
  resourceName: '=1+1',
  resourceType: 'Agent',
  serviceName: 'Agents',
  serviceCategory: 'AI and Machine Learning',
  serviceSubcategory: 'AI Platforms',
  sku: 'agent_compute_runtime_gbs',
  meter: 'Compute Runtime',
  usage: decimalText('999999999999999.999999999'),
  unit: 'GB-Seconds',
  cost: decimalText('0.000000000001'),
  workspace: null,
};

it('a line quotes what would break it, changes no name, and leaves a null empty', () => {
  const cells = [
    ...['0.000000000001', 'acme', '"Acme\r\n""West""\n"', 'USD', '2025-11-01T00:00:00Z', '2025-10-01T00:00:00Z'],
    ...['Usage', '', '" blank at both ends "', 'Usage-Based', '2025-10-02T00:00:00Z', '2025-10-01T00:00:00Z'],
    ...['999999999999999.999999999', 'GB-Seconds', '0.000000000001', '0.000000000001', '', '"Us, Inc"'],
    ...['0.000000000001', '999999999999999.999999999', 'GB-Seconds', '"Us, Inc"', '"Us, Inc"', 'acme/agent/x', '=1+1'],
    ...['Agent', 'AI and Machine Learning', 'Agents', 'AI Platforms', 'agent_compute_runtime_gbs', 'Compute Runtime'],
    ...['', 'agent_compute_runtime_gbs', '', ''],
  ];
  expect(cells).toHaveLength(FOCUS_COLUMNS.length);
  expect(focusCsvLines([CHARGE])).toBe(`${cells.join(',')}\r\n`);
  expect(focusCsvHeading().split(',')).toHaveLength(FOCUS_COLUMNS.length);
});
