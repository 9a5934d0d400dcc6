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
    [{ withoutResourceUuid: 'true' }, 2],
    [{ withoutResourceUuid: 'true', resourceUuid: 'u-3' }, 6],
    [{ withoutResourceUuid: 'false' }, 7],
    [{ billingDimension: 'job_compute_runtime_gbs' }, 4],
    [{ workspace: 'other', resourceType: 'sandbox' }, 2],
    [{ workspace: 'nobody has this one' }, 0],
    [{ resourceType: 'volume' }, 0],
  ])('%j selects events worth %d USD', async (filters, cost) => {
    expect(await totalCost(filters)).toBe(cost);
  });

  it.each([
    ['workspace=main&workspace=other', 7],
    ['workspace=main&workspace=main&workspace=nobody', 1],
    ['resourceUuid=u-1&resourceUuid=u-3', 5],
    ['resourceUuid=u-1&resourceUuid=u-3&workspace=other', 4],
    ['resourceType=job&resourceType=volume', 4],
    ['billingDimension=job_compute_runtime_gbs&billingDimension=sandbox_compute_runtime_gbs&workspace=other', 6],
  ])('several values are alternatives: %s selects events worth %d USD', async (filters, cost) => {
    const answer = await api.request(metricsPath('acme', `${new URLSearchParams(DAY)}&${filters}`), bearer(key));
    expect(answer.body).toMatchObject({ summary: { totalCost: cost } });
  });

  it.each([
    ['excludeWorkspace=main', 6],
    ['excludeWorkspace=main&excludeWorkspace=other', 0],
    ['excludeResourceType=job', 3],
    ['excludeResourceName=box', 4],
    ['excludeResourceName=nobody&excludeResourceName=nobody', 7],
    ['excludeBillingDimension=sandbox_compute_runtime_gbs&excludeBillingDimension=volume_storage_gbs', 4],
    ['excludeWorkspace=main&excludeResourceType=job', 2],
    ['excludeResourceUuid=u-1', 6],
    ['excludeWithoutResourceUuid=true', 5],
    ['excludeWithoutResourceUuid=false', 7],
    ['excludeWithoutResourceUuid=true&excludeResourceUuid=u-1', 4],
    ['workspace=main&workspace=other&excludeWorkspace=other', 1],
    ['resourceName=box&excludeResourceUuid=u-1', 2],
    ['resourceType=job&excludeResourceType=job', 0],
    ['withoutResourceUuid=true&excludeWithoutResourceUuid=true', 0],
  ])('leave out what they exclude, whatever else selects it: %s selects events worth %d USD', async (filters, cost) => {
    const answer = await api.request(metricsPath('acme', `${new URLSearchParams(DAY)}&${filters}`), bearer(key));
    expect(answer.body).toMatchObject({ summary: { totalCost: cost } });
  });

  it('leave out one of 300 names', async () => {
    const many = await api.key('many names');
    const event300 = (_: unknown, n: number) =>
      event({ accountId: 'many names', resourceName: `box-${n}`, cost: n === 7 ? '1000' : '1' });
    await api.seed(Array.from({ length: 300 }, event300));
    const query = { ...DAY, excludeResourceName: 'box-7' };
    expect((await readMetrics(api, 'many names', many, query)).summary.totalCost).toBe(299);
  });

  it('have at most 100 values in all', async () => {
    const names = (count: number) => Array.from({ length: count }, (_, n) => `resourceName=box-${n}`).join('&');
    const ask = (filters: string) =>
      api.request(metricsPath('acme', `${new URLSearchParams(DAY)}&${filters}`), bearer(key));
    expect((await ask(names(100))).status).toBe(200);
    expect((await ask(names(100).replaceAll('resourceName', 'excludeResourceName'))).status).toBe(200);
    const excluding = [`excludeResourceName=box&${names(100)}`, `excludeWithoutResourceUuid=true&${names(100)}`];
    for (const filters of [
      names(101),
      `workspace=main&${names(100)}`,
      `withoutResourceUuid=true&${names(100)}`,
      ...excluding,
    ]) {
      const { error, message } = errorOf(await ask(filters));
      expect([error, message]).toEqual(['invalid_parameter', expect.stringContaining('at most 100 values')]);
    }
  });

  it('a type and a dimension that exclude each other select nothing', async () => {
    const exclusive = { resourceType: 'job', billingDimension: 'sandbox_compute_runtime_gbs' };
    expect(await totalCost(exclusive)).toBe(0);
    expect((await readMetrics(api, 'acme', key, { ...DAY, ...exclusive, groupBy: 'resource_name' })).data).toEqual([]);
  });

  it.each(['limit', 'resourceName', 'resourceType', 'excludeResourceType'])(
    'quotes in %s are data, never SQL',
    async (name) => {
      const answer = await api.request(metricsPath('acme', { ...DAY, [name]: "x' OR 1=1 --" }), bearer(key));
      if (name === 'resourceName') expect(answer.text).toContain('"totalCost":0');
      else expect(answer.status).toBe(400);
    },
  );
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
    ['resourceUuid', 'give it a value or leave it out'],
    ['withoutResourceUuid', 'give it a value or leave it out'],
    ['billingDimension', 'give it a value or leave it out'],
    ['limit', 'give it a value or leave it out'],
  ])('%s must not be empty, and the answer says: %s', async (name, advice) => {
    const { error, details, message } = await refusal({ ...DAY, [name]: '' });
    expect(error).toBe('invalid_parameter');
    expect(details).toEqual([{ parameter: name, message: `${name} is empty; ${advice}.` }]);
    expect(message).toBe(`${name} is empty; ${advice}.`);
  });

  it.each(['startTime', 'resolution', 'limit', 'cursor', 'withoutResourceUuid'])(
    '%s must not be repeated, even with the same value',
    async (name) => {
      const query = new URLSearchParams(DAY);
      query.set(name, query.get(name) ?? 'true');
      query.append(name, query.get(name) ?? '');
      const { details } = await refusal(String(query));
      expect(details).toEqual([{ parameter: name, message: expect.stringContaining('give it once') }]);
    },
  );

  it('an empty value beside another one is refused, too', async () => {
    for (const name of ['workspace', 'groupBy', 'resourceUuid']) {
      const { details } = await refusal(`${new URLSearchParams(DAY)}&${name}=workspace&${name}=`);
      expect(details).toEqual([{ parameter: name, message: expect.stringContaining(`${name} is empty`) }]);
    }
  });

  it('an unknown parameter is refused with the list of the valid ones', async () => {
    const { details } = await refusal({ ...DAY, group_by: 'workspace' });
    expect(details).toEqual([
      {
        parameter: 'group_by',
        message:
          '"group_by" is not a parameter; the parameters are startTime, endTime, resolution, groupBy, workspace, resourceType, resourceName, resourceUuid, billingDimension, withoutResourceUuid, excludeWorkspace, excludeResourceType, excludeResourceName, excludeResourceUuid, excludeBillingDimension, excludeWithoutResourceUuid, limit, cursor.',
      },
    ]);
  });

  it('several unknown parameters are refused with one list', async () => {
    const { details } = await refusal(`${new URLSearchParams(DAY)}&label=a&from=1&to=2`);
    expect(details?.map(({ message }) => message)).toEqual([
      expect.stringContaining('label is not supported'),
      expect.stringContaining('"from" is not a parameter; the parameters are startTime'),
      '"to" is not a parameter.',
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

it.each([
  ['unknown parameters', (index: number) => `${String.fromCharCode(97 + (index % 26))}${index}`],
  ['characters that JSON escapes', (index: number) => `%00${index}=%01`],
  ['repeated parameters', (index: number) => `limit=${index}`],
])('however many faults it has, a request gets no answer many times its size: %s', async (_what, fault) => {
  for (const count of [1, 10, 100, 1_500]) {
    const query = Array.from({ length: count }, (_, index) => fault(index)).join('&');
    const { status, text } = await api.request(metricsPath('acme', query), bearer(key));
    expect(status).toBe(400);
    // What the shortest request needs besides: the path, Host and the credentials.
    expect(text.length).toBeLessThan(20 * (query.length + 200));
    expect(text.length).toBeLessThan(8_000);
  }
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
    ['withoutResourceUuid', '1'],
    ['withoutResourceUuid', 'TRUE'],
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
