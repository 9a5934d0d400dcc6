import { describe, expect, it } from '@jest/globals';
import { decimalText, groupKey } from '@meterline/catalog';
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

describe('the table of an answer', () => {
  it('shows what other pages hold, so that it adds up', () => {
    expect(reportText(report(ENTRIES, '40.004'), WIDE)).toBe(
      [
        'acme: 2025-10-01T00:00:00Z to 2025-10-01T12:00:00Z (UTC), hourly',
        '',
        'WORKSPACE       TYPE   RESOURCE                             COST   SHARE  TREND',
        'production      agent  support                            $36.00   90.0%  ▁▂▃▄▅▆▇█····',
        'production      agent  a-resource-with-quite-a-long-name  $0.004   <0.1%  █···········',
        '(other groups)                                             $4.00   10.0%',
        'Total                                                     $40.00  100.0%',
      ].join('\n'),
    );
  });

  it('says where a group has several values, and leaves out the workspace of a member', () => {
    const [{ workspace: _, ...several }, one] = [entry('support', '36', ['36']), entry('crawler', '4', ['4'])];
    const rows = (hidesWorkspace: boolean, ...entries: MetricsEntry[]) =>
      reportText({ ...report(entries, '40'), hidesWorkspace }, WIDE)
        .split('\n')
        .slice(2, -1)
        .map((line) => line.split(/ {2,}/).slice(0, 3));
    expect(rows(false, several, one)).toEqual([
      ['WORKSPACE', 'TYPE', 'RESOURCE'],
      ['several workspaces', 'agent', 'support'],
      ['production', 'agent', 'crawler'],
    ]);
    expect(rows(true, several)[1]?.slice(0, 2)).toEqual(['agent', 'support']);
  });

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

  it('shows every digit when asked', () => {
    const text = reportText(report([entry('x', '1234567.000000000001', ['1'])], '1234567.000000000001'), {
      ...WIDE,
      isExact: true,
    });
    expect(text).toContain('$1,234,567.000000000001');
  });

  it('has beside each group what it cost before, and adds up there too', () => {
    const before = {
      answer: {
        startTime: '2025-09-24T00:00:00Z',
        endTime: '2025-09-24T12:00:00Z',
        summary: { totalCost: decimalText('50') },
      },
      distance: '1 week earlier',
      costs: new Map([[groupKey({ resourceName: 'support' }, ['resource_name']), decimalText('48')]]),
    };
    const lines = reportText({ ...report(ENTRIES, '36.004'), before }, { ...WIDE, width: 80 }).split('\n');
    expect(lines.slice(1)).toEqual([
      'Before: 2025-09-24T00:00:00Z to 2025-09-24T12:00:00Z, 1 week earlier',
      '',
      'RESOURCE                             COST   SHARE  BEFORE   CHANGE  TREND',
      'support                            $36.00  >99.9%  $48.00   -25.0%  ▁▂▃▄▅▆▇█····',
      'a-resource-with-quite-a-long-name  $0.004   <0.1%   $0.00      new  █···········',
      '(other groups)                      $0.00    0.0%   $2.00  -100.0%',
      'Total                              $36.00  100.0%  $50.00   -28.0%',
    ]);
  });

  it('says that there was nothing', () => {
    expect(reportText(report([], '0'), WIDE)).toMatch(/\n\nNothing was used in this window\.$/);
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
