import { describe, expect, it } from '@jest/globals';
import { decimalText, groupKey } from '@meterline/catalog';
import type { MetricsEntry } from '@meterline/client';
import { previousCostIn, rowOf } from '../table/rows.js';
import { type CsvSource, seriesCsv, tableCsv } from './exports.js';

const lines = (csv: string) => csv.replace(/^\uFEFF/, '').split('\r\n');

describe('the CSV', () => {
  const entry = (resourceName: string, cost: string, usage: string): MetricsEntry => ({
    resourceName,
    workspace: 'main',
    resourceType: 'volume',
    billingDimension: 'volume_storage_gbs',
    summary: { cost: decimalText(cost), usage: decimalText(usage) },
    timeseries: [
      { timestamp: '2026-11-01T00:00:00Z', cost: decimalText(cost), usage: decimalText(usage) },
      { timestamp: '2026-11-02T00:00:00Z', cost: decimalText('0'), usage: decimalText('0') },
    ],
  });
  const keyBy = ['resource_name'] as const;
  const entries = [entry('disk', '0.75', '10'), entry('=evil', '0.25', '2.5')];
  const then = { entries: [entry('disk', '1.5', '20')], isWhole: true };
  const before = previousCostIn(then, keyBy);
  const source: CsvSource = {
    rows: entries.map((each) => rowOf(each, keyBy)),
    groupBy: ['resource_name', 'billing_dimension'],
    answer: {
      startTime: '2026-11-01T00:00:00Z',
      endTime: '2026-11-03T00:00:00Z',
      resolution: 'daily',
      summary: { totalCost: decimalText('1') },
    },
    isCompared: false,
  };
  const GROUP = 'workspace,resourceType,resourceName,billingDimension';
  const TIMES = '2026-11-01T00:00:00Z,2026-11-03T00:00:00Z';

  it('of the table has codes, every digit, the share and the unit', () => {
    expect(lines(tableCsv(source))).toEqual([
      `${GROUP},startTime,endTime,costUsd,usage,unit,sharePercent`,
      `main,volume,disk,volume_storage_gbs,${TIMES},0.75,10,gbs,75`,
      `main,volume,"'=evil",volume_storage_gbs,${TIMES},0.25,2.5,gbs,25`,
      '',
    ]);
  });

  it('begins with a byte order mark, for Excel', () => {
    expect(tableCsv({ ...source, rows: [], groupBy: ['resource_type'] })).toBe(
      '\uFEFFresourceType,startTime,endTime,costUsd,sharePercent\r\n',
    );
  });

  it('has the period before when compared; a group that was not there has no percent', () => {
    const rows = entries.map((each) => ({ ...rowOf(each, keyBy), previousCost: before(groupKey(each, keyBy)) }));
    const [header, disk, evil] = lines(tableCsv({ ...source, rows, isCompared: true }));
    expect(header).toMatch(/,previousCostUsd,changeUsd,changePercent$/);
    expect(disk).toMatch(/,1\.5,-0\.75,-50$/);
    expect(evil).toMatch(/,0,0\.25,$/);
  });

  it('of the series has a line for each bucket', () => {
    expect(lines(seriesCsv({ ...source, rows: source.rows.slice(0, 1) }))).toEqual([
      `${GROUP},timestamp,resolution,costUsd,usage,unit`,
      'main,volume,disk,volume_storage_gbs,2026-11-01T00:00:00Z,daily,0.75,10,gbs',
      'main,volume,disk,volume_storage_gbs,2026-11-02T00:00:00Z,daily,0,0,gbs',
      '',
    ]);
  });
});
