import { expect, it } from '@jest/globals';
import { formatScaled, isDecimalText } from '@meterline/catalog/plain';
import fc from 'fast-check';
import { type ExactJson, exactNumber, type RawJson, writeJson } from './response.js';

function exact(text: string): RawJson {
  if (!isDecimalText(text)) throw new TypeError(text);
  return exactNumber(text);
}

it('writeJson writes whatever JSON.stringify would write, where there are no numbers', () => {
  const { tree } = fc.letrec<{ tree: ExactJson }>((tie) => ({
    tree: fc.oneof(
      { maxDepth: 4 },
      fc.string({ unit: 'binary' }),
      fc.boolean(),
      fc.array(tie('tree')),
      fc.dictionary(fc.string({ unit: 'binary' }), tie('tree')),
    ),
  }));
  fc.assert(fc.property(tree, (value) => expect(writeJson(value)).toBe(JSON.stringify(value))));
});

it('writeJson writes every scaled decimal as a JSON number that means the same', () => {
  fc.assert(
    fc.property(fc.bigInt(0n, 10n ** 30n), (scaled) => {
      const text = writeJson(exact(formatScaled(scaled, 12)));
      expect(Number.isNaN(JSON.parse(text))).toBe(false);
      const [integer = '', fraction = ''] = text.split('.');
      expect(BigInt(integer + fraction.padEnd(12, '0'))).toBe(scaled);
    }),
  );
});
