import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import {
  bearer,
  DAY,
  type ErrorBody,
  errorOf,
  event,
  metricsPath,
  type Query,
  readMetrics,
  startApi,
  type TestApi,
} from './fixture.js';

let api: TestApi;
let key: string;

beforeAll(async () => {
  api = await startApi();
  key = await api.key('acme');
  await api.seed([
    event({ workspace: 'main', resourceName: 'box', resourceUuid: 'u-1', cost: '1' }),
    event({ workspace: 'other', resourceName: 'box', resourceUuid: '', cost: '2' }),
    event({
      workspace: 'other',
      resourceType: 'job',
      billingDimension: 'job_compute_runtime_gbs',
      resourceName: "it's a \\ \u{1f600} job",
      resourceUuid: 'u-3',
      cost: '4',
    }),
  ]);
});
afterAll(() => api.stop());

async function refusal(query: Query | string): Promise<ErrorBody> {
  const answer = await api.request(metricsPath('acme', query), bearer(key));
  expect(answer.status).toBe(400);
  return errorOf(answer);
}

async function totalCost(filters: Query): Promise<number> {
  return (await readMetrics(api, 'acme', key, { ...DAY, ...filters })).summary.totalCost;
}

describe('filters', () => {
  it.each<[Query, number]>([
    [{}, 7],
    [{ workspace: 'main' }, 1],
    [{ workspace: 'other' }, 6],
    [{ resourceType: 'sandbox' }, 3],
    [{ resourceName: 'box' }, 3],
    [{ resourceName: "it's a \\ \u{1f600} job" }, 4],
    [{ resourceUuid: 'u-3' }, 4],
    [{ resourceUuid: '' }, 2],
    [{ billingDimension: 'job_compute_runtime_gbs' }, 4],
    [{ workspace: 'other', resourceType: 'sandbox' }, 2],
    [{ workspace: 'nobody has this one' }, 0],
    [{ resourceType: 'volume' }, 0],
  ])('%j selects events worth %d USD', async (filters, cost) => {
    expect(await totalCost(filters)).toBe(cost);
  });

  it('a type and a dimension that exclude each other select nothing', async () => {
    const exclusive = { resourceType: 'job', billingDimension: 'sandbox_compute_runtime_gbs' };
    expect(await totalCost(exclusive)).toBe(0);
    expect((await readMetrics(api, 'acme', key, { ...DAY, ...exclusive, groupBy: 'resource_name' })).data).toEqual([]);
  });

  it.each(['limit', 'resourceName', 'resourceType'])('quotes in %s are data, never SQL', async (name) => {
    const answer = await api.request(metricsPath('acme', { ...DAY, [name]: "x' OR 1=1 --" }), bearer(key));
    if (name === 'resourceName') expect(answer.text).toContain('"totalCost":0');
    else expect(answer.status).toBe(400);
  });
});

describe('strict parameters', () => {
  it.each([
    ['startTime', 'it is required, give it a value'],
    ['endTime', 'it is required, give it a value'],
    ['resolution', 'give it a value or leave it out'],
    ['groupBy', 'give it a value or leave it out'],
    ['workspace', 'give it a value or leave it out'],
    ['resourceType', 'give it a value or leave it out'],
    ['resourceName', 'give it a value or leave it out'],
    ['billingDimension', 'give it a value or leave it out'],
    ['limit', 'give it a value or leave it out'],
  ])('%s must not be empty, and the answer says: %s', async (name, advice) => {
    const { error, details, message } = await refusal({ ...DAY, [name]: '' });
    expect(error).toBe('invalid_parameter');
    expect(details).toEqual([{ parameter: name, message: `${name} is empty; ${advice}.` }]);
    expect(message).toBe(`${name} is empty; ${advice}.`);
  });

  it.each(['startTime', 'groupBy', 'cursor', 'resourceUuid'])(
    '%s must not be repeated, even with the same value',
    async (name) => {
      const query = new URLSearchParams(DAY);
      query.set(name, query.get(name) ?? 'workspace');
      query.append(name, query.get(name) ?? '');
      const { details } = await refusal(String(query));
      expect(details).toEqual([{ parameter: name, message: expect.stringContaining('give it once') }]);
    },
  );

  it('an unknown parameter is refused with the list of the valid ones', async () => {
    const { details } = await refusal({ ...DAY, group_by: 'workspace' });
    expect(details).toEqual([
      {
        parameter: 'group_by',
        message:
          '"group_by" is not a parameter; the parameters are startTime, endTime, resolution, groupBy, workspace, resourceType, resourceName, resourceUuid, billingDimension, limit, cursor.',
      },
    ]);
  });

  it.each(['startTime ', 'STARTTIME', 'toString', '__proto__', 'constructor'])(
    '%j is not a parameter',
    async (name) => {
      const { details } = await refusal(`${new URLSearchParams(DAY)}&${encodeURIComponent(name)}=1`);
      expect(details?.map(({ parameter }) => parameter)).toEqual([name]);
    },
  );

  it.each(['label', 'unit'])('%s has a message of its own', async (name) => {
    const { details } = await refusal({ ...DAY, [name]: 'x' });
    expect(details).toEqual([{ parameter: name, message: expect.stringContaining(`${name} is not supported;`) }]);
  });

  it('all faults come at once', async () => {
    const { details, message } = await refusal({ startTime: 'x', resolution: 'yearly', limit: '0', unit: 'gbs' });
    expect(details?.map(({ parameter }) => parameter).sort()).toEqual([
      'endTime',
      'limit',
      'resolution',
      'startTime',
      'unit',
    ]);
    for (const detail of details ?? []) expect(message).toContain(detail['message']);
  });
});

describe('values', () => {
  it.each<[string, string]>([
    ['resolution', 'Hourly'],
    ['resolution', 'yearly'],
    ['resourceType', 'sandboxes'],
    ['resourceType', 'Sandbox'],
    ['billingDimension', 'compute'],
    ['billingDimension', 'toString'],
    ['limit', '0'],
    ['limit', '00'],
    ['limit', '-1'],
    ['limit', '1.5'],
    ['limit', '1e1'],
    ['limit', ' 1'],
    ['limit', '0x10'],
    ['limit', '١'],
    ['workspace', 'a\nb'],
    ['workspace', 'w'.repeat(257)],
    ['resourceName', '\u0000'],
    ['resourceUuid', 'u'.repeat(257)],
  ])('%s=%j is refused and named', async (name, value) => {
    const { error, details } = await refusal({ ...DAY, [name]: value });
    expect(error).toBe('invalid_parameter');
    expect(details).toEqual([{ parameter: name, message: expect.stringContaining(`${name} must be`) }]);
  });

  it.each<[string, string]>([
    ['limit', '1'],
    ['limit', '0100'],
    ['limit', '101'],
    ['limit', '9'.repeat(400)],
    ['workspace', '\u{1f600}'.repeat(256)],
    ['resourceName', ' '],
    ['resourceUuid', ''],
    ['cursor', ''],
    ['resourceType', 'custom_domain'],
    ['billingDimension', 'agent_async_requests_count'],
    ['resolution', 'monthly'],
  ])('%s=%j is accepted', async (name, value) => {
    await readMetrics(api, 'acme', key, { ...DAY, [name]: value });
  });

  it.each(['%', '%zz', '%ff', '%ed%a0%80', '%c0%af'])('%s in the query is not percent-encoded UTF-8', async (bad) => {
    const answer = await api.request(metricsPath('acme', `${new URLSearchParams(DAY)}&workspace=${bad}`), bearer(key));
    expect(answer.status).toBe(400);
    expect(errorOf(answer).error).toBe('malformed_url');
  });
});
