/** The client against the real service. */
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { addDecimals, sumDecimals } from '@meterline/catalog';
import { MeterlineClient, type MetricsAnswer } from '@meterline/client';
import { bearer, DAY, event, metricsPath, startApi, type TestApi } from './fixture.js';

const ACCOUNT = 'acme & söhne';

let api: TestApi;
let key: string;
let client: MeterlineClient;

beforeAll(async () => {
  api = await startApi();
  key = await api.key(ACCOUNT);
  client = new MeterlineClient({ baseUrl: api.url, credential: key, retries: 0 });
  await api.seed(
    Array.from({ length: 250 }, (_, n) =>
      event({ accountId: ACCOUNT, resourceName: `box-${n}`, workspace: `w${n % 3}`, cost: `${n}.000000000001` }),
    ),
  );
});
afterAll(() => api.stop());

describe('metrics', () => {
  it('keeps digits that a double would lose', async () => {
    const account = 'big';
    const big = new MeterlineClient({ baseUrl: api.url, credential: await api.key(account) });
    await api.seed([event({ accountId: account, cost: '123456789012.123456789012', usage: '99999999999.123456789' })]);
    const answer = await big.metrics(account, { ...DAY, groupBy: ['billing_dimension'] });
    expect(answer.summary).toEqual({ totalCost: '123456789012.123456789012', totalUsage: '99999999999.123456789' });
    expect(answer.data[0]).toMatchObject({
      resourceType: 'sandbox',
      billingDimension: 'sandbox_compute_runtime_gbs',
      summary: { cost: '123456789012.123456789012', usage: '99999999999.123456789' },
    });
  });

  it('iterates over every page, and the pages add up to the total', async () => {
    const pages: MetricsAnswer[] = [];
    for await (const page of client.metricsPages(ACCOUNT, { ...DAY, groupBy: ['resource_name'] })) pages.push(page);
    expect(pages.map(({ data }) => data.length)).toEqual([100, 100, 50]);
    const entries = pages.flatMap(({ data }) => data);
    expect(new Set(entries.map(({ resourceName }) => resourceName)).size).toBe(250);
    expect(sumDecimals(entries.map(({ summary }) => summary.cost))).toBe(pages[0]?.summary.totalCost);
    expect(pages[0]?.summary.totalCost).toBe('31125.00000000025');
  });

  it('sends every parameter', async () => {
    const query = {
      startTime: new Date(DAY.startTime),
      endTime: DAY.endTime,
      resolution: 'daily',
      groupBy: ['workspace', 'billing_dimension'],
      workspace: 'w1',
      resourceType: 'sandbox',
      resourceName: 'box-7',
      resourceUuid: 'u-1',
      billingDimension: 'sandbox_compute_runtime_gbs',
      limit: 5,
      cursor: '',
    } as const;
    const { data, resolution } = await client.metrics(ACCOUNT, query);
    expect([resolution, data.length, data[0]?.summary.cost, data[0]?.timeseries.length]).toEqual([
      'daily',
      1,
      '7.000000000001',
      1,
    ]);
    expect((await client.metrics(ACCOUNT, { ...query, resourceUuid: '' })).data).toEqual([]);
  });

  it('gives the text as the API sent it', async () => {
    const { text } = await api.request(metricsPath(ACCOUNT, DAY), bearer(key));
    expect(await client.metricsText(ACCOUNT, DAY)).toBe(text);
  });

  it('sums up what it reads', async () => {
    const { data, summary } = await client.metrics(ACCOUNT, { ...DAY, groupBy: ['workspace'] });
    expect(data.map((entry) => entry.summary.cost).reduce(addDecimals)).toBe(summary.totalCost);
  });
});

describe('enums and accounts', () => {
  it('lists them', async () => {
    expect(await client.resourceTypes(ACCOUNT, DAY)).toEqual(['sandbox']);
    expect(await client.groupByDimensions(ACCOUNT)).toContain('workspace');
  });

  it.each(['2026-04-16', '2026-04-28'] as const)('lists accounts at version %s', async (apiVersion) => {
    const pinned = new MeterlineClient({ baseUrl: `${api.url}/v0/`, getCredential: async () => key, apiVersion });
    expect(await pinned.accounts()).toEqual([
      { id: ACCOUNT, name: ACCOUNT, role: 'admin', createdAt: expect.any(String) },
    ]);
  });
});

describe('refusals', () => {
  it('carry status, code, message, details and request id', async () => {
    const query = { ...DAY, startTime: 'yesterday' };
    await expect(client.metrics(ACCOUNT, query)).rejects.toMatchObject({
      name: 'MeterlineError',
      status: 400,
      code: 'invalid_parameter',
      message: expect.stringContaining('startTime must be RFC 3339'),
      details: [{ parameter: 'startTime', message: expect.any(String) }],
      requestId: expect.stringMatching(/^[0-9a-f-]{36}$/),
      retryAfter: undefined,
    });
  });

  it('a key that is revoked is refused from then on', async () => {
    const doomed = await api.keys.create({ account: ACCOUNT, role: 'member', clientId: 'a/b c' }, new Date());
    const reader = new MeterlineClient({ baseUrl: api.url, credential: doomed.key });
    expect(await reader.metrics(ACCOUNT, DAY)).toMatchObject({ resolution: 'hourly' });
    await client.revokeApiKey('a/b c', doomed.keyId);
    await client.revokeApiKey('a/b c', doomed.keyId);
    await expect(reader.metrics(ACCOUNT, DAY)).rejects.toMatchObject({ status: 401, code: 'unauthorized' });
  });
});
