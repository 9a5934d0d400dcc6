import { expect, it } from '@jest/globals';
import { decimalText } from '@meterline/catalog';
import type { MetricsEntry } from '@meterline/client';
import { previousCostIn, rowOf } from '../table/rows.js';
import { type CsvSource, seriesCsv, tableCsv } from './exports.js';

const BY_NAME = ['resource_name'] as const;
const entry = (resourceName: string, cost: string): MetricsEntry => ({
  ...{ resourceName, workspace: 'main', resourceType: 'volume', billingDimension: 'volume_storage_gbs' },
  summary: { cost: decimalText(cost), usage: decimalText('10') },
  timeseries: [
    { timestamp: '2026-11-01T00:00:00Z', cost: decimalText(cost), usage: decimalText('10') },
    { timestamp: '2026-11-02T00:00:00Z', cost: decimalText('0'), usage: decimalText('0') },
  ],
});
const rows = [entry('disk', '0.75'), entry('=evil', '0.25')].map((each) => rowOf(each, BY_NAME));
const source: CsvSource = {
  rows,
  groupBy: ['resource_name', 'billing_dimension'],
  answer: {
    ...{ startTime: '2026-11-01T00:00:00Z', endTime: '2026-11-03T00:00:00Z', resolution: 'daily' },
    summary: { totalCost: decimalText('1') },
  },
  isCompared: false,
};
const lines = (csv: string) => csv.split('\r\n');

it('the CSV of the table has its rows, and what they cost before when compared; what was not there has no percent', () => {
  const before = previousCostIn({ entries: [entry('disk', '1.5')], isWhole: true }, BY_NAME);
  const compared = rows.map((row) => ({ ...row, previousCost: before(row.key) }));
  const [heading, disk, evil] = lines(tableCsv({ ...source, rows: compared, isCompared: true }));
  expect(heading).toMatch(/,costUsd,usage,unit,sharePercent,previousCostUsd,changeUsd,changePercent$/);
  expect(disk).toMatch(/^main,volume,disk,volume_storage_gbs,.*,0\.75,10,gbs,75,1\.5,-0\.75,-50$/);
  expect(evil).toMatch(/^main,volume,"'=evil",.*,0\.25,10,gbs,25,0,0\.25,$/);
});

it('the CSV of the series has a line for each bucket', () => {
  expect(lines(seriesCsv({ ...source, rows: rows.slice(0, 1) }))).toEqual([
    '\uFEFFworkspace,resourceType,resourceName,billingDimension,timestamp,resolution,costUsd,usage,unit',
    'main,volume,disk,volume_storage_gbs,2026-11-01T00:00:00Z,daily,0.75,10,gbs',
    'main,volume,disk,volume_storage_gbs,2026-11-02T00:00:00Z,daily,0,0,gbs',
    '',
  ]);
});
