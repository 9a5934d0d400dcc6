import { describe, expect, it } from '@jest/globals';
import { csvLine } from './csv.js';

describe('a line of CSV', () => {
  it.each([
    ['plain', 'plain'],
    ['', ''],
    ['a,b', '"a,b"'],
    ['a;b', '"a;b"'],
    ['say "hi"', '"say ""hi"""'],
    ['two\nlines', '"two\nlines"'],
    ['a=b', 'a=b'],
  ])('%j is %j', (text, cell) => expect(csvLine([text])).toBe(`${cell}\r\n`));

  it.each(['=1+1', '+1', '-1', '@SUM(A1)', '\t=1', '\r=1', '＝1+1', '=HYPERLINK("http://x")'])(
    '%j is no formula any more',
    (text) => expect(csvLine([text])).toBe(`"'${text.replaceAll('"', '""')}"\r\n`),
  );

  it('leaves figures as figures', () => {
    expect(csvLine(['-x', { figure: '-1.5' }, { figure: '' }])).toBe('"\'-x",-1.5,\r\n');
  });
});
