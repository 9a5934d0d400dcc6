import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { bearer, errorOf, metricsPath, readMetrics, startApi, type TestApi } from './fixture.js';

let api: TestApi;
let key: string;

beforeAll(async () => {
  api = await startApi();
  key = await api.key('acme');
});
afterAll(() => api.stop());

const resolutionOf = async (startTime: string, endTime: string) =>
  (await readMetrics(api, 'acme', key, { startTime, endTime })).resolution;
const refusal = async (query: Record<string, string>) => {
  const answer = await api.request(metricsPath('acme', query), bearer(key));
  expect(answer.status).toBe(400);
  return errorOf(answer);
};

describe('the default resolution', () => {
  it.each([
    ['1 ms', '2025-10-01T00:00:00Z', '2025-10-01T00:00:00.001Z', 'hourly'],
    ['1 ms below 7 days', '2025-10-01T00:00:00Z', '2025-10-07T23:59:59.999Z', 'hourly'],
    ['exactly 7 days', '2025-10-01T00:00:00Z', '2025-10-08T00:00:00Z', 'daily'],
    ['1 ms above 7 days', '2025-10-01T00:00:00Z', '2025-10-08T00:00:00.001Z', 'daily'],
    ['1 ms below 90 days', '2025-01-01T00:00:00Z', '2025-03-31T23:59:59.999Z', 'daily'],
    ['exactly 90 days', '2025-01-01T00:00:00Z', '2025-04-01T00:00:00Z', 'weekly'],
    ['1 ms below a year', '2025-01-01T00:00:00Z', '2025-12-31T23:59:59.999Z', 'weekly'],
    ['exactly a year', '2025-01-01T00:00:00Z', '2026-01-01T00:00:00Z', 'monthly'],
    ['365 days of a leap year', '2024-01-01T00:00:00Z', '2024-12-31T00:00:00Z', 'weekly'],
    ['366 days of a leap year', '2024-01-01T00:00:00Z', '2025-01-01T00:00:00Z', 'monthly'],
    ['a year from 29 February', '2024-02-29T00:00:00Z', '2025-02-28T00:00:00Z', 'monthly'],
    ['1 ms below it', '2024-02-29T00:00:00Z', '2025-02-27T23:59:59.999Z', 'weekly'],
  ])('%s', async (_name, startTime, endTime, resolution) => {
    expect(await resolutionOf(startTime, endTime)).toBe(resolution);
  });
});

describe('the cap of an explicit resolution', () => {
  it.each([
    ['hourly', '2025-10-01T12:00:00Z', '2025-10-08T12:00:00Z', '2025-10-08T12:00:00.001Z', '7 days'],
    ['daily', '2025-01-01T00:00:00Z', '2025-04-01T00:00:00Z', '2025-04-01T00:00:00.001Z', '90 days'],
    ['weekly', '2025-01-01T00:00:00Z', '2026-01-01T00:00:00Z', '2026-01-01T00:00:00.001Z', '1 year'],
    ['weekly', '2024-01-01T00:00:00Z', '2025-01-01T00:00:00Z', '2025-01-01T00:00:00.001Z', '1 year'],
    ['weekly', '2024-02-29T00:00:00Z', '2025-02-28T00:00:00Z', '2025-02-28T00:00:00.001Z', '1 year'],
  ])('%s from %s includes %s but not %s', async (resolution, startTime, at, above, cap) => {
    expect((await readMetrics(api, 'acme', key, { startTime, endTime: at, resolution })).resolution).toBe(resolution);
    const { error, details } = await refusal({ startTime, endTime: above, resolution });
    expect(error).toBe('invalid_parameter');
    expect(details).toEqual([{ parameter: 'resolution', message: expect.stringContaining(`at most ${cap}`) }]);
  });

  it('monthly has none', async () => {
    const whole = { startTime: '1970-01-01T00:00:00Z', endTime: '2100-12-31T23:59:59.999Z', resolution: 'monthly' };
    const { data } = await readMetrics(api, 'acme', key, whole);
    expect(data[0]?.timeseries).toHaveLength(131 * 12);
  });

  it.each(['hourly', 'daily', 'weekly', 'monthly'])('%s may be asked for an hour', async (resolution) => {
    const hour = { startTime: '2025-10-01T00:00:00Z', endTime: '2025-10-01T01:00:00Z', resolution };
    expect((await readMetrics(api, 'acme', key, hour)).data[0]?.timeseries).toHaveLength(1);
  });
});

describe('times', () => {
  it.each([
    ['2025-10-01T00:00:00+00:00', '2025-10-01T00:00:00Z'],
    ['2025-10-01T00:00:00.000000000Z', '2025-10-01T00:00:00Z'],
    ['2025-10-01T00:00:00.5Z', '2025-10-01T00:00:00.5Z'],
    ['2025-10-01T00:00:00.120Z', '2025-10-01T00:00:00.12Z'],
    ['2025-10-01T00:00:00.1239Z', '2025-10-01T00:00:00.123Z'],
    ['1970-01-01T00:00:00Z', '1970-01-01T00:00:00Z'],
  ])('%s is echoed as %s', async (startTime, echo) => {
    const body = await readMetrics(api, 'acme', key, { startTime, endTime: '2025-10-02T00:00:00.25Z' });
    expect([body.startTime, body.endTime]).toEqual([echo, '2025-10-02T00:00:00.25Z']);
  });

  it.each([
    ['0001-01-01T00:00:00Z', '1600-01-01T00:00:00Z', 'monthly', 1599 * 12],
    ['0099-12-31T23:00:00Z', '0100-01-01T00:30:00Z', 'hourly', 2],
    ['9999-12-31T00:00:00Z', '9999-12-31T23:59:59.999Z', 'hourly', 24],
    ['1969-12-31T00:00:00Z', '1970-01-02T00:00:00Z', 'hourly', 48],
  ])('may be long before any event or long after: %s to %s, %s', async (startTime, endTime, resolution, buckets) => {
    const body = await readMetrics(api, 'acme', key, { startTime, endTime });
    expect([body.startTime, body.endTime, body.resolution]).toEqual([startTime, endTime, resolution]);
    expect(body.data[0]?.timeseries).toHaveLength(buckets);
  });

  it('may not have more buckets than an answer has room for', async () => {
    const { error, message } = await refusal({ startTime: '0001-01-01T00:00:00Z', endTime: '9999-12-31T23:59:59Z' });
    expect([error, message]).toEqual([
      'invalid_parameter',
      'The window has 119988 monthly buckets, and an answer at most 20000; shorten the window.',
    ]);
  });

  it.each([
    '2025-10-01',
    '2025-10-01T00:00:00',
    '2025-10-01T02:00:00+02:00',
    '2025-10-01T00:00:00-00:00',
    '2025-10-01T00:00Z',
    '2025-02-29T00:00:00Z',
    '2025-10-01T24:00:00Z',
    '2025-10-01T00:00:60Z',
    '2025-10-01T00:00:00.Z',
    '2025-10-01T00:00:00.0123456789Z',
    '0000-12-31T23:59:59.999Z',
    '10000-01-01T00:00:00Z',
    '-0001-01-01T00:00:00Z',
    '1759276800',
    'now',
  ])('%s is refused for both ends', async (time) => {
    const { details } = await refusal({ startTime: time, endTime: time });
    expect(details?.map(({ parameter }) => parameter)).toEqual(['startTime', 'endTime']);
    expect(details?.[0]?.['message']).toContain('startTime must be RFC 3339 in UTC');
  });

  it('a plus that arrived as a space is explained', async () => {
    const answer = await api.request(
      metricsPath('acme', 'startTime=2025-10-01T00:00:00+00:00&endTime=2025-10-02T00:00:00Z'),
      bearer(key),
    );
    expect(errorOf(answer).message).toContain('encode the plus as %2B');
  });

  it('startTime must lie before endTime, at the millisecond that is kept', async () => {
    const start = '2025-10-01T00:00:00.0001Z';
    for (const endTime of ['2025-09-30T00:00:00Z', '2025-10-01T00:00:00Z', '2025-10-01T00:00:00.0009Z']) {
      expect((await refusal({ startTime: start, endTime })).message).toContain('endTime must be after startTime');
    }
    await readMetrics(api, 'acme', key, { startTime: start, endTime: '2025-10-01T00:00:00.001Z' });
  });
});
