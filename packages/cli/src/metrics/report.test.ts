import { describe, expect, it } from '@jest/globals';
import { decimalText } from '@meterline/catalog';
import type { MetricsEntry } from '@meterline/client';
import { displayWidth } from '../output/table.js';
import { type Report, type ReportLayout, reportText, sparkline } from './report.js';

const PLAIN = { strong: (text: string) => text, quiet: (text: string) => text };
const WIDE: ReportLayout = { width: undefined, style: PLAIN, isExact: false };

function entry(resourceName: string, cost: string, costs: readonly string[]): MetricsEntry {
  return {
    workspace: 'production',
    resourceType: 'agent',
    resourceName,
    summary: { cost: decimalText(cost) },
    timeseries: costs.map((amount, hour) => ({
      timestamp: `2025-10-01T${String(hour).padStart(2, '0')}:00:00Z`,
      cost: decimalText(amount),
    })),
  };
}

function report(entries: readonly MetricsEntry[], totalCost: string): Report {
  const answer = {
    startTime: '2025-10-01T00:00:00Z',
    endTime: '2025-10-01T12:00:00Z',
    resolution: 'hourly',
    summary: { totalCost: decimalText(totalCost) },
    meta: { hasMore: false, nextCursor: '' },
  } as const;
  return { account: 'acme', groupBy: ['resource_name'], hidesWorkspace: false, answer, entries, before: undefined };
}

const HALF_DAY = ['1', '2', '3', '4', '5', '6', '7', '8', '0', '0', '0', '0'];
const ENTRIES = [
  entry('support', '36', HALF_DAY),
  entry('a-resource-with-quite-a-long-name', '0.004', ['0.004', ...HALF_DAY.slice(1).map(() => '0')]),
];

describe('a table on a narrow terminal', () => {
  it('gives up first the fields that nobody asked for, then the ends of names', () => {
    const lines = reportText(report(ENTRIES, '36.004'), { ...WIDE, width: 64 })
      .split('\n')
      .slice(2);
    expect(lines).toEqual([
      'RESOURCE                             COST   SHARE  TREND',
      'support                            $36.00  >99.9%  ▁▂▃▄▅▆▇█····',
      'a-resource-with-quite-a-long-name  $0.004   <0.1%  █···········',
      'Total                              $36.00  100.0%',
    ]);
    const narrow = reportText(report(ENTRIES, '36.004'), { ...WIDE, width: 40 })
      .split('\n')
      .slice(2);
    expect(Math.max(...narrow.map(displayWidth))).toBeLessThanOrEqual(40);
    expect(narrow[2]).toMatch(/^a-resou\S*… +\$0\.004 +<0\.1% +█·+$/);
  });
});

it.each<[number[], number, string]>([
  [[0, 1, 2, 3, 4, 5, 6, 7, 8], 40, '·▁▂▃▄▅▆▇█'],
  [[0.0000001, 1_000_000], 40, '▁█'],
  [[0, 0], 40, '··'],
  [[], 40, ''],
  [[1, 1, 4, 4, 0, 0], 3, '▂█·'],
  [[1, 2, 3], 0, '█'],
])('%j in %d characters is %s', (values, width, expected) => {
  expect(sparkline(values, width)).toBe(expected);
});
