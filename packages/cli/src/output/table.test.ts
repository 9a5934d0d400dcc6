import { PassThrough } from 'node:stream';
import { WriteStream } from 'node:tty';
import { expect, it } from '@jest/globals';
import fc from 'fast-check';
import { displayWidth, fieldLines, layoutFor, shortened, tableWidth, textTable } from './table.js';

const COLUMNS = [
  { heading: 'NAME', minWidth: 5 },
  { heading: 'TYPE', minWidth: 4 },
  { heading: 'COST', isNumeric: true },
];
const row = (...cells: string[]) => ({ cells });
const WIDE = [row('a-long-name', 'sandbox', '12.50'), row('b', 'job', '0.10')];

it.each([
  [
    'has its full width without a terminal',
    WIDE,
    undefined,
    'NAME         TYPE      COST\na-long-name  sandbox  12.50\nb            job       0.10',
  ],
  [
    'shortens names, the widest first, and never an amount',
    WIDE,
    22,
    'NAME    TYPE      COST\na-lon…  sandbox  12.50\nb       job       0.10',
  ],
  ['has no trailing spaces', [row('a', 'b', ''), row('longer')], undefined, 'NAME    TYPE  COST\na       b\nlonger'],
  [
    'replaces control characters',
    [row('a\u001b[2J\nb\u009b', '', '1')],
    undefined,
    'NAME      TYPE  COST\na\uFFFD[2J\uFFFDb\uFFFD           1',
  ],
  [
    'replaces characters that change the direction of text or break the line',
    [row('a\u202Eb\u2066c\u2069\u200F', 'x\u2028y', 'עברית')],
    undefined,
    'NAME     TYPE   COST\na\uFFFDb\uFFFDc\uFFFD\uFFFD  x\uFFFDy   עברית',
  ],
  [
    'aligns by terminal columns, not by characters',
    [row('名前名', 'x', '1'), row('e\u0301', 'y', '2')],
    undefined,
    'NAME    TYPE  COST\n名前名  x        1\ne\u0301       y        2',
  ],
])('a table %s', (_what, rows, width, expected) => {
  expect(textTable(COLUMNS, rows, { width })).toBe(expected);
});

it('a table has a dim heading and bold strong rows', () => {
  const style = (format: string, text: string) => `<${format}>${text}`;
  const styled = textTable([{ heading: 'X' }], [{ cells: ['y'], isStrong: true }], { style });
  expect(styled).toBe('<dim>X\n<bold>y');
});

it('a table fits every terminal that is wide enough for its minimum widths', () => {
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

it('field lines align their values and replace control characters', () => {
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
])('%s shortened to four columns is %s', (text, short) => expect(shortened(text, 4)).toBe(short));

it.each<[string, Record<string, string> | undefined, string]>([
  ['a terminal', { TERM: 'xterm-256color' }, '\u001b[1mx\u001b[22m'],
  ['a pipe', undefined, 'x'],
  ['a dumb terminal', { TERM: 'dumb' }, 'x'],
  ['a terminal with NO_COLOR', { TERM: 'xterm', NO_COLOR: '1' }, 'x'],
])('bold text is correct on %s', (_name, variables, expected) => {
  const terminal = { isTTY: true, getColorDepth: () => WriteStream.prototype.getColorDepth(variables) };
  const stdout = Object.assign(new PassThrough(), variables && terminal);
  expect(layoutFor({ stdout }).style('bold', 'x')).toBe(expected);
});
