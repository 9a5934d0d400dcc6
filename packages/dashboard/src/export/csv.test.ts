import { describe, expect, it } from '@jest/globals';
import { type DecimalText, decimalText } from '@meterline/catalog';
import type { MetricsEntry } from '@meterline/client';
import { groupKey } from '../breakdown/breakdown.js';
import { costCsv } from './cost-csv.js';
import { writeCsv } from './csv.js';

const lines = (csv: string) => csv.replace(/^\uFEFF/, '').split('\r\n');
const cell = (text: string) =>
  lines(writeCsv(['name'], [[{ text }]]))
    .slice(1, -1)
    .join('\r\n');

describe('CSV', () => {
  it.each(['=1+1', '+1', '-1', '@SUM(A1)', '=cmd|/C calc!A0', '\t=1', '  =1+1', '|x', '%x'])(
    'a name such as %j is text to a spreadsheet, never a formula',
    (name) => {
      expect(cell(name)).toBe(`'${name}`);
    },
  );

  it.each([
    ['a,b', '"a,b"'],
    ['say "hi"', '"say ""hi"""'],
    ['two\r\nlines', '"two\r\nlines"'],
    [' edges ', '" edges "'],
    ['plain-name', 'plain-name'],
    ['naïve 日本', 'naïve 日本'],
  ])('%j is written as %j', (text, written) => {
    expect(cell(text)).toBe(written);
  });

  it('numbers are written as they stand, also below zero', () => {
    const row = [{ number: '0.000000000001' }, { number: '-12.5' }, undefined];
    expect(lines(writeCsv(['a', 'b', 'c'], [row]))).toEqual(['a,b,c', '0.000000000001,-12.5,', '']);
  });

  it('begins with a byte order mark, for Excel', () => {
    expect(writeCsv(['a'], [])).toBe('\uFEFFa\r\n');
  });
});

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
      'workspace,resource_type,resource_name,billing_dimension,cost_usd,share_percent,usage,unit',
      'main,volume,disk,volume_storage_gbs,0.75,75,10,gbs',
      "main,volume,'=evil,volume_storage_gbs,0.25,25,2.5,gbs",
      '',
    ]);
  });

  it('has the period before when compared; a group that was not there has no percent', () => {
    const previous = new Map<string, DecimalText>([
      [groupKey({ resourceName: 'disk' }, ['resource_name']), decimalText('1.5')],
    ]);
    const [header, disk, evil] = lines(costCsv({ ...source, previous }));
    expect(header).toMatch(/,previous_cost_usd,change_usd,change_percent$/);
    expect(disk).toMatch(/,1\.5,-0\.75,-50$/);
    expect(evil).toMatch(/,0,0\.25,$/);
  });
});
