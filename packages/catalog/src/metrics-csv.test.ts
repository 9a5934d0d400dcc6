import { expect, it } from '@jest/globals';
import type { MetricsEntry } from './api/responses.js';
import { decimalText } from './decimal.js';
import { csvLine, groupsCsvLines } from './metrics-csv.js';

it('a line of CSV has quotes where a text needs them, and texts as they are', () => {
  const plain = ['plain', '', 'a=b', 'plain-name', 'naïve 日本'];
  const quoted = ['a,b', 'a;b', 'two\nlines', 'two\r\nlines', ' edges ', 'a\tb'];
  expect(plain.map((text) => csvLine([text]))).toEqual(plain.map((text) => `${text}\r\n`));
  expect(quoted.map((text) => csvLine([text]))).toEqual(quoted.map((text) => `"${text}"\r\n`));
  expect(csvLine(['say "hi"'])).toBe('"say ""hi"""\r\n');
});

it.each([
  ...['=1+1', '+1', '-1', '@SUM(A1)', '\t=1', '\r=1', '\n=1', '＝1+1', ' ＝1+1', '＋1', '－1', '＠x', '|x', '%x'],
  ...['=HYPERLINK("http://x")', '  =1+1', '\u200B=1+1', '\u202E \u2066=1+1', '\uFF5Cx', '\uFF05x'],
])('a line of CSV has a name such as %j as text, which no spreadsheet takes for a formula', (text) => {
  expect(csvLine([text])).toBe(`"'${text.replaceAll('"', '""')}"\r\n`);
});

it('a line of CSV for programs is quoted in the same way and has no apostrophes', () => {
  expect(csvLine(['=1+1', 'a,b', ' x'], 'plain')).toBe('=1+1,"a,b"," x"\r\n');
});

it('a line of CSV has numbers as they stand, also below zero', () => {
  expect(csvLine(['-x', { number: '-12.5' }, { number: '0.000000000001' }, { number: '' }])).toBe(
    '"\'-x",-12.5,0.000000000001,\r\n',
  );
});

function lines(groupBy: Parameters<typeof groupsCsvLines>[2]): string {
  const entry: MetricsEntry = {
    resourceType: 'volume',
    billingDimension: 'volume_storage_gbs',
    summary: { cost: decimalText('0.75'), usage: decimalText('10') },
    timeseries: [],
  };
  const response = {
    ...{ startTime: '2026-10-01T00:00:00Z', endTime: '2026-11-01T00:00:00Z' },
    summary: { totalCost: decimalText('3') },
  };
  return groupsCsvLines(response, [entry], groupBy).join('');
}

it('the columns of metrics are the fields in canonical order, enriched ones too, the cost, and usage with its unit', () => {
  expect(lines(['billing_dimension', 'resource_name'])).toBe(
    '\uFEFFworkspace,resourceType,resourceName,billingDimension,startTime,endTime,costUsd,usage,unit,sharePercent\r\n' +
      ',volume,,volume_storage_gbs,2026-10-01T00:00:00Z,2026-11-01T00:00:00Z,0.75,10,gbs,25\r\n',
  );
});

it('the columns of metrics have no usage where a group may have several units', () => {
  expect(lines([])).toMatch(/^\uFEFFstartTime,endTime,costUsd,sharePercent\r\n/);
});
