import { describe, expect, it } from '@jest/globals';
import type { MetricsEntry } from './api/responses.js';
import { decimalText, ZERO } from './decimal.js';
import { csvHeading, csvLine, csvRow, groupsCsvColumns, plainCsvLine } from './metrics-csv.js';

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

  it('for programs is quoted in the same way and has no apostrophes', () => {
    expect(plainCsvLine(['=1+1', 'a,b', ' x'])).toBe('=1+1,"a,b"," x"\r\n');
  });

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
  const answer = {
    ...{ startTime: '2026-10-01T00:00:00Z', endTime: '2026-11-01T00:00:00Z' },
    summary: { totalCost: decimalText('3') },
  };
  const lines = (groupBy: Parameters<typeof groupsCsvColumns>[0]) => {
    const columns = groupsCsvColumns(groupBy, false);
    return csvHeading(columns) + csvRow(columns, { answer, entry, amounts: entry.summary, before: ZERO });
  };

  it('are the fields of an answer in canonical order, enriched ones included, the cost, and the usage with its unit', () => {
    expect(lines(['billing_dimension', 'resource_name'])).toBe(
      '\uFEFFworkspace,resourceType,resourceName,billingDimension,startTime,endTime,costUsd,usage,unit,sharePercent\r\n' +
        ',volume,,volume_storage_gbs,2026-10-01T00:00:00Z,2026-11-01T00:00:00Z,0.75,10,gbs,25\r\n',
    );
  });

  it('have no usage where a group may have several units', () => {
    expect(lines([])).toMatch(/^\uFEFFstartTime,endTime,costUsd,sharePercent\r\n/);
  });
});
