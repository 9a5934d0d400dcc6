import { expect, it } from '@jest/globals';
import { ApiError } from '@meterline/api/http/errors';
import { formatScaled, isDecimalText } from '@meterline/catalog';
import fc from 'fast-check';
import { parseMetricsRequest } from './request.js';
import { type ExactJson, exactNumber, type RawJson, writeJson } from './response.js';

const WINDOW = 'startTime=2025-10-01T00:00:00Z&endTime=2025-10-02T00:00:00Z';

function refusalOf(rawQuery: string): ApiError {
  try {
    parseMetricsRequest(rawQuery);
  } catch (error) {
    if (error instanceof ApiError) return error;
    throw error;
  }
  throw new Error(`${rawQuery} was accepted`);
}

it('parseMetricsRequest fills in the defaults', () => {
  expect(parseMetricsRequest(WINDOW)).toEqual({
    window: { startTime: Date.UTC(2025, 9, 1), endTime: Date.UTC(2025, 9, 2) },
    resolution: 'hourly',
    groupBy: [],
    filters: {},
    excluded: {},
    limit: 100,
    cursor: '',
  });
  const year = 'startTime=2025-10-01T00:00:00Z&endTime=2026-10-01T00:00:00Z';
  expect(parseMetricsRequest(year).resolution).toBe('monthly');
});

it('parseMetricsRequest brings everything into canonical form', () => {
  const query =
    `${WINDOW}&groupBy=billing_dimension%2Cresource_type&groupBy=workspace&limit=007&resolution=daily` +
    '&resourceUuid=v&withoutResourceUuid=true&resourceUuid=u&resourceUuid=v&workspace=a+b' +
    '&excludeResourceUuid=x&excludeWithoutResourceUuid=true&excludeResourceUuid=w&excludeResourceUuid=x&excludeWorkspace=c';
  expect(parseMetricsRequest(query)).toMatchObject({
    resolution: 'daily',
    groupBy: ['workspace', 'resource_type', 'billing_dimension'],
    filters: { resource_uuid: ['', 'u', 'v'], workspace: ['a b'] },
    excluded: { resource_uuid: ['', 'w', 'x'], workspace: ['c'] },
    limit: 7,
  });
});

it('parseMetricsRequest cuts a long value short where it quotes it', () => {
  expect(refusalOf(`${WINDOW}&resourceType=${'x'.repeat(5_000)}`).message.length).toBeLessThan(300);
});

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
