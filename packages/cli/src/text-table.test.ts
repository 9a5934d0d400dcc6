import { expect, it } from '@jest/globals';
import { shortened, textTable } from './text-table.js';

it('a table aligns its columns and pads no line at its end', () => {
  const rows = [
    ['NAME', 'COST', 'NOTE'],
    ['a', '1.5', ''],
    ['longer', '10', 'x'],
  ];
  expect(textTable(rows, [1])).toBe('NAME    COST  NOTE\na        1.5\nlonger    10  x');
});

it('a table shows control characters and obeys none', () => {
  expect(textTable([['a\u001b[2J\nb\u009b']])).toBe('a\uFFFD[2J\uFFFDb\uFFFD');
});

it('a table counts the cells of a terminal, not characters', () => {
  expect(
    textTable([
      ['名前', 'x'],
      ['ab', 'y'],
      ['e\u0301', 'z'],
    ]),
  ).toBe('名前  x\nab    y\ne\u0301     z');
});

it('a table shows characters that change the direction of text, and obeys none', () => {
  expect(textTable([['acme\u202Edorp', 'a\u2066b\u2069\u200F', 'x\u2028y', 'עברית']])).toBe(
    'acme\uFFFDdorp  a\uFFFDb\uFFFD\uFFFD  x\uFFFDy  עברית',
  );
});

it.each([
  ['four', 'four'],
  ['fiver', 'fiv…'],
  ['😀😀', '😀😀'],
  ['😀😀😀', '😀…'],
  ['👩‍👩‍👧‍👦x👩‍👩‍👧‍👦', '👩‍👩‍👧‍👦x…'],
])('%s takes at most four cells as %s', (text, short) => expect(shortened(text, 4)).toBe(short));
