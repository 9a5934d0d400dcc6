import { describe, expect, it } from '@jest/globals';
import { type DecimalText, decimalText } from '@meterline/catalog';
import type { MetricsEntry } from '@meterline/client';
import { groupKey } from '../breakdown/breakdown.js';
import { costCsv } from './cost-csv.js';

const lines = (csv: string) => csv.replace(/^\uFEFF/, '').split('\r\n');

describe('the CSV of costs', () => {
  const entry = (resourceName: string, cost: string, usage: string): MetricsEntry => ({
    resourceName,
    workspace: 'main',
    resourceType: 'volume',
    billingDimension: 'volume_storage_gbs',
    summary: { cost: decimalText(cost), usage: decimalText(usage) },
    timeseries: [],
  });
  const source = {
    entries: [entry('disk', '0.75', '10'), entry('=evil', '0.25', '2.5')],
    groupBy: ['resource_name', 'billing_dimension'] as const,
    keyBy: ['resource_name'] as const,
    totalCost: decimalText('1'),
  };

  it('has codes, every digit, the share and the unit', () => {
    expect(lines(costCsv({ ...source, previous: undefined }))).toEqual([
      'workspace,resourceType,resourceName,billingDimension,costUsd,sharePercent,usage,unit',
      'main,volume,disk,volume_storage_gbs,0.75,75,10,gbs',
      'main,volume,"\'=evil",volume_storage_gbs,0.25,25,2.5,gbs',
      '',
    ]);
  });

  it('begins with a byte order mark, for Excel', () => {
    const empty = { ...source, entries: [], groupBy: ['resource_type'] as const, previous: undefined };
    expect(costCsv(empty)).toBe('\uFEFFresourceType,costUsd,sharePercent\r\n');
  });

  it('has the period before when compared; a group that was not there has no percent', () => {
    const previous = new Map<string, DecimalText>([
      [groupKey({ resourceName: 'disk' }, ['resource_name']), decimalText('1.5')],
    ]);
    const [header, disk, evil] = lines(costCsv({ ...source, previous }));
    expect(header).toMatch(/,previousCostUsd,changeUsd,changePercent$/);
    expect(disk).toMatch(/,1\.5,-0\.75,-50$/);
    expect(evil).toMatch(/,0,0\.25,$/);
  });
});
