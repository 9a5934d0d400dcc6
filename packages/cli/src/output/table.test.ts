import { PassThrough } from 'node:stream';
import { describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import { environment } from '../settings.js';
import { displayWidth, layoutFor, shortened, tableWidth, textTable } from './table.js';

const COLUMNS = [
  { heading: 'NAME', least: 5 },
  { heading: 'TYPE', least: 4 },
  { heading: 'COST', isNumeric: true },
];
const ROWS = [{ cells: ['a-long-name', 'sandbox', '12.50'] }, { cells: ['b', 'job', '0.10'], isStrong: true }];

describe('a table', () => {
  it('has its full width where there is no terminal', () => {
    expect(textTable(COLUMNS, ROWS)).toBe(
      'NAME         TYPE      COST\na-long-name  sandbox  12.50\nb            job       0.10',
    );
  });

  it('cuts names, the widest first, and no amount', () => {
    expect(textTable(COLUMNS, ROWS, { width: 22 })).toBe(
      'NAME    TYPE      COST\na-lon…  sandbox  12.50\nb       job       0.10',
    );
  });

  it('marks its heading and its strong rows', () => {
    const marked = { strong: (text: string) => `<b>${text}</b>`, quiet: (text: string) => `<i>${text}</i>` };
    expect(textTable([{ heading: 'X' }], [{ cells: ['y'], isStrong: true }], { style: marked })).toBe(
      '<i>X</i>\n<b>y</b>',
    );
  });

  it('fits every width that leaves room for what is not cut', () => {
    const cell = fc.string({ unit: 'grapheme', maxLength: 30 });
    fc.assert(
      fc.property(
        fc.array(fc.tuple(cell, cell), { minLength: 1 }),
        fc.integer({ min: 20, max: 60 }),
        (names, width) => {
          const rows = names.map(([a, b]) => ({ cells: [a, b, '1.00'] }));
          const lines = textTable(COLUMNS, rows, { width }).split('\n');
          for (const line of lines) expect(displayWidth(line)).toBeLessThanOrEqual(width);
          expect(tableWidth(COLUMNS, rows)).toBeGreaterThan(0);
        },
      ),
    );
  });
});

/** A table of texts, the first row being the heading. */
function plain([headings = [], ...rows]: readonly (readonly string[])[], numeric: readonly number[] = []): string {
  const columns = headings.map((heading, index) => ({ heading, isNumeric: numeric.includes(index) }));
  return textTable(
    columns,
    rows.map((cells) => ({ cells })),
  );
}

it('a table aligns its columns and pads no line at its end', () => {
  const rows = [
    ['NAME', 'COST', 'NOTE'],
    ['a', '1.5', ''],
    ['longer', '10', 'x'],
  ];
  expect(plain(rows, [1])).toBe('NAME    COST  NOTE\na        1.5\nlonger    10  x');
});

it('a table shows control characters and obeys none', () => {
  expect(plain([['X'], ['a\u001b[2J\nb\u009b']])).toBe('X\na\uFFFD[2J\uFFFDb\uFFFD');
});

it('a table counts the cells of a terminal, not characters', () => {
  expect(
    plain([
      ['名前', 'x'],
      ['ab', 'y'],
      ['e\u0301', 'z'],
    ]),
  ).toBe('名前  x\nab    y\ne\u0301     z');
});

it('a table shows characters that change the direction of text, and obeys none', () => {
  expect(
    plain([
      ['A', 'B', 'C', 'D'],
      ['acme\u202Edorp', 'a\u2066b\u2069\u200F', 'x\u2028y', 'עברית'],
    ]),
  ).toBe('A          B      C    D\nacme\uFFFDdorp  a\uFFFDb\uFFFD\uFFFD  x\uFFFDy  עברית');
});

it.each([
  ['four', 'four'],
  ['fiver', 'fiv…'],
  ['😀😀', '😀😀'],
  ['😀😀😀', '😀…'],
  ['👩‍👩‍👧‍👦x👩‍👩‍👧‍👦', '👩‍👩‍👧‍👦x…'],
])('%s takes at most four cells as %s', (text, short) => expect(shortened(text, 4)).toBe(short));

it.each<[string, boolean, Record<string, string>, string]>([
  ['a terminal', true, { TERM: 'xterm-256color' }, '\u001b[1mx\u001b[22m'],
  ['a pipe', false, { TERM: 'xterm-256color' }, 'x'],
  ['a terminal that is dumb', true, { TERM: 'dumb' }, 'x'],
  ['a terminal with NO_COLOR', true, { TERM: 'xterm', NO_COLOR: '1' }, 'x'],
  ['a terminal with an empty NO_COLOR', true, { TERM: 'xterm', NO_COLOR: '' }, '\u001b[1mx\u001b[22m'],
])('strong text on %s', (_name, isTTY, variables, expected) => {
  const stdout = Object.assign(new PassThrough(), { isTTY });
  expect(layoutFor({ stdout, environment: environment.parse(variables) }).style.strong('x')).toBe(expected);
});
