import { expect, it } from '@jest/globals';
import { ApiError } from '@meterline/api';
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

it('parseMetricsRequest accepts every window of up to 1,600 years within the years 0001 to 9999', () => {
  const first = Date.parse('0001-01-01T00:00:00Z');
  const last = Date.parse('9999-12-31T23:59:59.999Z');
  const length = fc.integer({ min: 1, max: 1_600 * 365 * 86_400_000 });
  fc.assert(
    fc.property(fc.integer({ min: first, max: last - 1 }), length, (start, length) => {
      const window = { startTime: start, endTime: Math.min(start + length, last) };
      const [startTime, endTime] = [window.startTime, window.endTime].map((time) => new Date(time).toISOString());
      expect(parseMetricsRequest(`startTime=${startTime}&endTime=${endTime}`).window).toEqual(window);
    }),
  );
});

it('parseMetricsRequest either accepts or names what is wrong, whatever it is given', () => {
  const names = ['startTime', 'endTime', 'groupBy', 'limit', 'resolution', 'workspace', 'cursor', 'other', '__proto__'];
  const pair = fc.tuple(fc.constantFrom(...names), fc.string({ unit: 'grapheme' }));
  fc.assert(
    fc.property(fc.array(pair), (pairs) => {
      const { status, code, details } = refusalOf(String(new URLSearchParams(pairs)));
      expect([status, code]).toEqual([400, 'invalid_parameter']);
      for (const { message, parameter } of details ?? []) expect(message).toContain(parameter);
    }),
  );
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
