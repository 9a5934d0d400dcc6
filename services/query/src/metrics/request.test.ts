import { describe, expect, it } from '@jest/globals';
import { bucketAxis } from '@meterline/catalog';
import fc from 'fast-check';
import { ApiError } from '../http/errors.js';
import { parseMetricsRequest, readsWorkspaces } from './request.js';

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

describe('parseMetricsRequest', () => {
  it('fills in the defaults', () => {
    expect(parseMetricsRequest(WINDOW)).toEqual({
      window: { startTime: Date.UTC(2025, 9, 1), endTime: Date.UTC(2025, 9, 2) },
      resolution: 'hourly',
      groupBy: [],
      filters: {},
      limit: 100,
      cursor: '',
    });
  });

  it('brings everything into canonical form', () => {
    const query = `${WINDOW}&groupBy=billing_dimension%2Cworkspace&resourceUuid=&workspace=a+b&limit=007&resolution=daily`;
    expect(parseMetricsRequest(query)).toMatchObject({
      resolution: 'daily',
      groupBy: ['workspace', 'billing_dimension'],
      filters: { resource_uuid: '', workspace: 'a b' },
      limit: 7,
    });
  });

  it('accepts every window within 1970 to 2100, and its answer stays bounded', () => {
    const instant = fc.date({ min: new Date(0), max: new Date(Date.UTC(2101, 0) - 1), noInvalidDate: true });
    fc.assert(
      fc.property(instant, instant, (a, b) => {
        fc.pre(a.getTime() !== b.getTime());
        const [start, end] = a < b ? [a, b] : [b, a];
        const request = parseMetricsRequest(`startTime=${start.toISOString()}&endTime=${end.toISOString()}`);
        expect(request.window).toEqual({ startTime: start.getTime(), endTime: end.getTime() });
        expect(bucketAxis(request.window, request.resolution).length).toBeLessThanOrEqual(131 * 12);
      }),
    );
  });

  it('either accepts or names what is wrong, whatever it is given', () => {
    const names = [
      'startTime',
      'endTime',
      'groupBy',
      'limit',
      'resolution',
      'workspace',
      'cursor',
      'other',
      '__proto__',
    ];
    const pair = fc.tuple(fc.constantFrom(...names), fc.string({ unit: 'grapheme' }));
    fc.assert(
      fc.property(fc.array(pair), (pairs) => {
        const { status, code, details } = refusalOf(String(new URLSearchParams(pairs)));
        expect([status, code]).toEqual([400, 'invalid_parameter']);
        for (const { message, parameter } of details ?? []) expect(message).toContain(parameter);
      }),
    );
  });

  it('does not complain that a repeated parameter is missing', () => {
    expect(refusalOf(`${WINDOW}&startTime=2025-10-01T00:00:00Z`).details?.map(({ parameter }) => parameter)).toEqual([
      'startTime',
    ]);
  });

  it('cuts a long value short where it quotes it', () => {
    expect(refusalOf(`${WINDOW}&resourceType=${'x'.repeat(5_000)}`).message.length).toBeLessThan(300);
  });
});

describe('readsWorkspaces', () => {
  it.each([
    ['', false],
    ['groupBy=resource_name', false],
    ['groupBy=resource_name,workspace', true],
    ['workspace=main', true],
  ])('%s: %s', (query, expected) => {
    expect(readsWorkspaces(parseMetricsRequest(`${WINDOW}&${query}`))).toBe(expected);
  });
});
