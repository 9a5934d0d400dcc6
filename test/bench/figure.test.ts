import { describe, expect, it } from '@jest/globals';
import { formatReport, median, percentile } from './figure.js';

describe('a figure of a bench', () => {
  it('is the nearest rank of its runs, in any order', () => {
    const runs = [40, 10, 30, 20, 50];
    expect(median(runs)).toBe(30);
    expect(percentile(runs, 0.99)).toBe(50);
    expect(percentile(runs, 0)).toBe(10);
    expect(() => median([])).toThrow('no values');
  });

  it('has a line in the table, with its peers and whether it reached its goal', () => {
    const machine = { cores: 2, processor: 'P', memoryGiB: 8, platform: 'linux x64', node: 'v20', loadAtStart: 0.5 };
    const peer = { what: 'peer', value: 1234.5, unit: 'rows/s' } as const;
    const figure = { bench: 'b', what: 'w', value: 12.345, unit: 'ms', beside: [peer] } as const;
    const figures = [{ ...figure, reach: { text: '< 10 ms', met: false } }, figure];
    const table = formatReport({ machine, events: 1_000_000, startedAt: '', seconds: 61.4, figures });
    expect(table.split('\n').slice(-2)).toEqual([
      '| b | w | 12.3 ms | peer 1,235 rows/s | < 10 ms | MISSED |',
      '| b | w | 12.3 ms | peer 1,235 rows/s | – |  |',
    ]);
    expect(table).toContain('load average 0.5 before the run; 1,000,000 events; 61 s');
  });
});
