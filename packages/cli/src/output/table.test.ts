import { describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import { displayWidth } from '../output/table.js';
import { fittedTable, tableWidth } from './table.js';

const PLAIN = { strong: (text: string) => text, quiet: (text: string) => text };
const COLUMNS = [
  { heading: 'NAME', least: 5 },
  { heading: 'TYPE', least: 4 },
  { heading: 'COST', isNumeric: true },
];
const ROWS = [{ cells: ['a-long-name', 'sandbox', '12.50'] }, { cells: ['b', 'job', '0.10'], isStrong: true }];

describe('a table', () => {
  it('has its full width where there is no terminal', () => {
    expect(fittedTable(COLUMNS, ROWS, undefined, PLAIN)).toBe(
      'NAME         TYPE      COST\na-long-name  sandbox  12.50\nb            job       0.10',
    );
  });

  it('cuts names, the widest first, and no figure', () => {
    expect(fittedTable(COLUMNS, ROWS, 22, PLAIN)).toBe(
      'NAME    TYPE      COST\na-lon…  sandbox  12.50\nb       job       0.10',
    );
  });

  it('marks its heading and its strong rows', () => {
    const marked = { strong: (text: string) => `<b>${text}</b>`, quiet: (text: string) => `<i>${text}</i>` };
    expect(fittedTable([{ heading: 'X' }], [{ cells: ['y'], isStrong: true }], undefined, marked)).toBe(
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
          const lines = fittedTable(COLUMNS, rows, width, PLAIN).split('\n');
          for (const line of lines) expect(displayWidth(line)).toBeLessThanOrEqual(width);
          expect(tableWidth(COLUMNS, rows)).toBeGreaterThan(0);
        },
      ),
    );
  });
});
