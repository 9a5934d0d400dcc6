import { expect, it } from '@jest/globals';
import { atMost, figure, formatReport, median, percentile } from './figure.js';

it('a figure of a bench is the nearest rank of its runs, in any order', () => {
  const runs = [40, 10, 30, 20, 50];
  expect([median(runs), percentile(runs, 0.99), percentile(runs, 0)]).toEqual([30, 50, 10]);
  expect(() => median([])).toThrow('no values');
});

it('a figure of a bench has a line in the table, with its peers and whether it reached its goal', () => {
  const machine = { cores: 2, processor: 'P', memoryGiB: 8, platform: 'linux x64', node: 'v20', loadAtStart: 0.5 };
  const beside = [{ what: 'peer', value: 1234.5, unit: 'rows/s' }] as const;
  const figures = [figure('w', 'ms', [13, 12.345, 1], { beside, goal: atMost(2, 4) }), figure('w', 'MB', [1])];
  const of = figures.map((each) => ({ bench: 'b', ...each }));
  const table = formatReport({ machine, events: 1_000_000, startedAt: '', seconds: 61.4, figures: of });
  expect(table.split('\n').slice(-2)).toEqual([
    '| b | w | 12.3 ms | peer 1,235 rows/s | 3.09× of ≤ 2× | MISSED |',
    '| b | w | 1 MB |  | – |  |',
  ]);
  expect(table).toContain('load average 0.5 before the run; 1,000,000 events; 61 s');
});
