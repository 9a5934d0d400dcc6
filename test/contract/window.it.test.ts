import { afterAll, beforeAll, expect, it } from '@jest/globals';
import { readMetrics, startApi, type TestApi } from '../harness/api.js';

let api: TestApi;
let key: string;

beforeAll(async () => {
  api = await startApi();
  key = await api.key('acme');
});
afterAll(() => api.stop());

const resolutionOf = async (startTime: string, endTime: string) =>
  (await readMetrics(api, 'acme', key, { startTime, endTime })).resolution;

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
])('the default resolution of %s is right', async (_name, startTime, endTime, resolution) => {
  expect(await resolutionOf(startTime, endTime)).toBe(resolution);
});

it.each([
  ['hourly', '2025-10-01T12:00:00Z', '2025-10-08T12:00:00Z'],
  ['daily', '2025-01-01T00:00:00Z', '2025-04-01T00:00:00Z'],
  ['weekly', '2025-01-01T00:00:00Z', '2026-01-01T00:00:00Z'],
  ['weekly', '2024-01-01T00:00:00Z', '2025-01-01T00:00:00Z'],
  ['weekly', '2024-02-29T00:00:00Z', '2025-02-28T00:00:00Z'],
])('the longest window of %s from %s reaches to %s', async (resolution, startTime, endTime) => {
  expect((await readMetrics(api, 'acme', key, { startTime, endTime, resolution })).resolution).toBe(resolution);
});

it('the resolution monthly has no longest window', async () => {
  const whole = { startTime: '1970-01-01T00:00:00Z', endTime: '2100-12-31T23:59:59.999Z', resolution: 'monthly' };
  const { data } = await readMetrics(api, 'acme', key, whole);
  expect(data[0]?.timeseries).toHaveLength(131 * 12);
});

it.each(['hourly', 'daily', 'weekly', 'monthly'])('the resolution %s may be asked for an hour', async (resolution) => {
  const hour = { startTime: '2025-10-01T00:00:00Z', endTime: '2025-10-01T01:00:00Z', resolution };
  expect((await readMetrics(api, 'acme', key, hour)).data[0]?.timeseries).toHaveLength(1);
});

it.each([
  ['2025-10-01T00:00:00+00:00', '2025-10-01T00:00:00Z'],
  ['2025-10-01T00:00:00.000000000Z', '2025-10-01T00:00:00Z'],
  ['2025-10-01T00:00:00.5Z', '2025-10-01T00:00:00.5Z'],
  ['2025-10-01T00:00:00.120Z', '2025-10-01T00:00:00.12Z'],
  ['2025-10-01T00:00:00.1239Z', '2025-10-01T00:00:00.123Z'],
  ['1970-01-01T00:00:00Z', '1970-01-01T00:00:00Z'],
])('the time %s is echoed as %s', async (startTime, echo) => {
  const body = await readMetrics(api, 'acme', key, { startTime, endTime: '2025-10-02T00:00:00.25Z' });
  expect([body.startTime, body.endTime]).toEqual([echo, '2025-10-02T00:00:00.25Z']);
});

it.each([
  ['0001-01-01T00:00:00Z', '1600-01-01T00:00:00Z', 'monthly', 1599 * 12],
  ['0099-12-31T23:00:00Z', '0100-01-01T00:30:00Z', 'hourly', 2],
  ['9999-12-31T00:00:00Z', '9999-12-31T23:59:59.999Z', 'hourly', 24],
  ['1969-12-31T00:00:00Z', '1970-01-02T00:00:00Z', 'hourly', 48],
])(
  'a window may be long before any event or long after, as from %s to %s, %s',
  async (startTime, endTime, resolution, buckets) => {
    const body = await readMetrics(api, 'acme', key, { startTime, endTime });
    expect([body.startTime, body.endTime, body.resolution]).toEqual([startTime, endTime, resolution]);
    expect(body.data[0]?.timeseries).toHaveLength(buckets);
  },
);

it('the ends of a window may differ by a millisecond', async () => {
  await readMetrics(api, 'acme', key, {
    startTime: '2025-10-01T00:00:00.0001Z',
    endTime: '2025-10-01T00:00:00.001Z',
  });
});
