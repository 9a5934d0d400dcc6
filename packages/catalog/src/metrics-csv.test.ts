import { describe, expect, it } from '@jest/globals';
import type { MetricsEntry } from './api/answers.js';
import { decimalText } from './decimal.js';
import { csvHeading, csvLine, csvRow, metricsColumns } from './metrics-csv.js';

describe('a line of CSV', () => {
  it.each([
    ['plain', 'plain'],
    ['', ''],
    ['a,b', '"a,b"'],
    ['a;b', '"a;b"'],
    ['say "hi"', '"say ""hi"""'],
    ['two\nlines', '"two\nlines"'],
    ['two\r\nlines', '"two\r\nlines"'],
    [' edges ', '" edges "'],
    ['a=b', 'a=b'],
    ['plain-name', 'plain-name'],
    ['naïve 日本', 'naïve 日本'],
  ])('%j is %j', (text, cell) => expect(csvLine([text])).toBe(`${cell}\r\n`));

  it.each([
    '=1+1',
    '+1',
    '-1',
    '@SUM(A1)',
    '\t=1',
    '\r=1',
    '\n=1',
    '＝1+1',
    ' ＝1+1',
    '＋1',
    '－1',
    '＠x',
    '=HYPERLINK("http://x")',
    '=cmd|/C calc!A0',
    '  =1+1',
    '|x',
    '%x',
    '\u200B=1+1',
    '\u202E \u2066=1+1',
    '\uFF5Cx',
    '\uFF05x',
  ])('a name such as %j is text to a spreadsheet, never a formula', (text) =>
    expect(csvLine([text])).toBe(`"'${text.replaceAll('"', '""')}"\r\n`),
  );

  it('numbers are written as they stand, also below zero', () => {
    expect(csvLine(['-x', { number: '-12.5' }, { number: '0.000000000001' }, { number: '' }])).toBe(
      '"\'-x",-12.5,0.000000000001,\r\n',
    );
  });
});

describe('the columns of metrics', () => {
  const entry: MetricsEntry = {
    resourceType: 'volume',
    billingDimension: 'volume_storage_gbs',
    summary: { cost: decimalText('0.75'), usage: decimalText('10') },
    timeseries: [],
  };
  const lines = (groupBy: Parameters<typeof metricsColumns>[0]) => {
    const columns = metricsColumns(groupBy, []);
    return csvHeading(columns) + csvRow(columns, { entry, amounts: entry.summary });
  };

  it('are the fields of an answer in canonical order, enriched ones included, the cost, and the usage with its unit', () => {
    expect(lines(['billing_dimension', 'resource_name'])).toBe(
      'workspace,resourceType,resourceName,billingDimension,costUsd,usage,unit\r\n' +
        ',volume,,volume_storage_gbs,0.75,10,gbs\r\n',
    );
  });

  it('have no usage where a group may have several units', () => {
    expect(lines([])).toBe('costUsd\r\n0.75\r\n');
  });
});
