import { PassThrough } from 'node:stream';
import { expect, it } from '@jest/globals';
import fc from 'fast-check';
import { environment } from '../settings.js';
import { displayWidth, fieldLines, layoutFor, shortened, tableWidth, textTable } from './table.js';

const COLUMNS = [
  { heading: 'NAME', least: 5 },
  { heading: 'TYPE', least: 4 },
  { heading: 'COST', isNumeric: true },
];
const row = (...cells: string[]) => ({ cells });
const WIDE = [row('a-long-name', 'sandbox', '12.50'), row('b', 'job', '0.10')];

it.each([
  [
    'has its full width where there is no terminal',
    WIDE,
    undefined,
    'NAME         TYPE      COST\na-long-name  sandbox  12.50\nb            job       0.10',
  ],
  [
    'cuts names, the widest first, and no amount',
    WIDE,
    22,
    'NAME    TYPE      COST\na-lon…  sandbox  12.50\nb       job       0.10',
  ],
  ['pads no line at its end', [row('a', 'b', ''), row('longer')], undefined, 'NAME    TYPE  COST\na       b\nlonger'],
  [
    'shows control characters and obeys none',
    [row('a\u001b[2J\nb\u009b', '', '1')],
    undefined,
    'NAME      TYPE  COST\na\uFFFD[2J\uFFFDb\uFFFD           1',
  ],
  [
    'shows characters that turn or break text, and obeys none',
    [row('a\u202Eb\u2066c\u2069\u200F', 'x\u2028y', 'עברית')],
    undefined,
    'NAME     TYPE   COST\na\uFFFDb\uFFFDc\uFFFD\uFFFD  x\uFFFDy   עברית',
  ],
  [
    'counts the cells of a terminal, not characters',
    [row('名前名', 'x', '1'), row('e\u0301', 'y', '2')],
    undefined,
    'NAME    TYPE  COST\n名前名  x        1\ne\u0301       y        2',
  ],
])('a table %s', (_what, rows, width, expected) => {
  expect(textTable(COLUMNS, rows, { width })).toBe(expected);
});

it('a table marks its heading and its strong rows', () => {
  const style = { strong: (text: string) => `<b>${text}</b>`, quiet: (text: string) => `<i>${text}</i>` };
  const marked = textTable([{ heading: 'X' }], [{ cells: ['y'], isStrong: true }], { style });
  expect(marked).toBe('<i>X</i>\n<b>y</b>');
});

it('a table fits every width that leaves room for what is not cut', () => {
  const cell = fc.string({ unit: 'grapheme', maxLength: 30 });
  const names = fc.array(fc.tuple(cell, cell), { minLength: 1 });
  fc.assert(
    fc.property(names, fc.integer({ min: 20, max: 60 }), (pairs, width) => {
      const rows = pairs.map(([a, b]) => row(a, b, '1.00'));
      for (const line of textTable(COLUMNS, rows, { width }).split('\n')) {
        expect(displayWidth(line)).toBeLessThanOrEqual(width);
      }
      expect(tableWidth(COLUMNS, rows)).toBeGreaterThan(0);
    }),
  );
});

it('fields stand below each other, with nothing in them that a terminal would obey', () => {
  expect(
    fieldLines([
      ['a', '1'],
      ['long', 'x\u001b[2J'],
    ]),
  ).toEqual(['a     1', 'long  x\uFFFD[2J']);
});

it.each([
  ['four', 'four'],
  ['fiver', 'fiv…'],
  ['😀😀', '😀😀'],
  ['😀😀😀', '😀…'],
  ['👩‍👩‍👧‍👦x👩‍👩‍👧‍👦', '👩‍👩‍👧‍👦x…'],
])('the text %s takes at most four cells as %s', (text, short) => expect(shortened(text, 4)).toBe(short));

it.each<[string, boolean, Record<string, string>, string]>([
  ['a terminal', true, { TERM: 'xterm-256color' }, '\u001b[1mx\u001b[22m'],
  ['a pipe', false, { TERM: 'xterm-256color' }, 'x'],
  ['a terminal that is dumb', true, { TERM: 'dumb' }, 'x'],
  ['a terminal with NO_COLOR', true, { TERM: 'xterm', NO_COLOR: '1' }, 'x'],
  ['a terminal with an empty NO_COLOR', true, { TERM: 'xterm', NO_COLOR: '' }, '\u001b[1mx\u001b[22m'],
])('strong text is right on %s', (_name, isTTY, variables, expected) => {
  const stdout = Object.assign(new PassThrough(), { isTTY });
  expect(layoutFor({ stdout, environment: environment.parse(variables) }).style.strong('x')).toBe(expected);
});
