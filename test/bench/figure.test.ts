import { describe, expect, it } from '@jest/globals';
import { median, percentile } from './figure.js';
import { readOptions } from './options.js';
import { formatReport } from './report.js';

describe('a figure', () => {
  it('is the nearest rank of its runs, in any order', () => {
    const runs = [40, 10, 30, 20, 50];
    expect(median(runs)).toBe(30);
    expect(percentile(runs, 0.99)).toBe(50);
    expect(percentile(runs, 0)).toBe(10);
    expect(runs).toEqual([40, 10, 30, 20, 50]);
    expect(() => median([])).toThrow('no values');
  });
});

describe('the command line', () => {
  it('takes the number of events, one bench and a file', () => {
    expect(readOptions(['--events', '500000', '--only', 'load', '--out', '/tmp/figures.json'], ['load'])).toMatchObject(
      {
        events: 500_000,
        only: 'load',
        out: '/tmp/figures.json',
      },
    );
    expect(readOptions([], ['load'])).toMatchObject({ events: 20_000_000, only: undefined });
  });

  it.each([['--only', 'nothing'], ['--events', '7'], ['--events', 'many'], ['--fast']])('refuses %s %s', (...args) => {
    expect(() => readOptions(args, ['load'])).toThrow('usage: npm run bench');
  });
});

describe('the table', () => {
  it('has a line for each figure, with its peers and whether it reached its goal', () => {
    const machine = { cores: 2, processor: 'P', memoryGiB: 8, platform: 'linux x64', node: 'v20', loadAtStart: 0.5 };
    const peer = { what: 'peer', value: 1234.5, unit: 'rows/s' } as const;
    const figure = { bench: 'b', what: 'w', value: 12.345, unit: 'ms', beside: [peer] } as const;
    const reach = { text: '< 10 ms', met: false };
    const table = formatReport({
      machine,
      events: 1_000_000,
      startedAt: '',
      seconds: 61.4,
      figures: [{ ...figure, reach }, figure],
    });
    expect(table.split('\n').slice(-2)).toEqual([
      '| b | w | 12.3 ms | peer 1,235 rows/s | < 10 ms | MISSED |',
      '| b | w | 12.3 ms | peer 1,235 rows/s | – |  |',
    ]);
    expect(table).toContain('load average 0.5 before the run; 1,000,000 events; 61 s');
  });
});
