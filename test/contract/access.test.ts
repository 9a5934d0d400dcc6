import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import {
  bearer,
  DAY,
  errorBody,
  errorOf,
  event,
  metricsPath,
  type Query,
  readMetrics,
  startApi,
  type TestApi,
} from './fixture.js';
import { sendBytes } from './raw-http.js';

let api: TestApi;
let admin: string;
let member: string;
let stranger: string;

beforeAll(async () => {
  api = await startApi();
  admin = await api.key('acme');
  member = await api.key('acme', 'member');
  stranger = await api.key('globex');
  await api.seed([event({ workspace: 'main', cost: '1' }), event({ workspace: 'other', cost: '2' })]);
});
afterAll(() => api.stop());

const ask = (token: string, query: Query = DAY, account = 'acme') =>
  api.request(metricsPath(account, query), bearer(token));
const withHeaders = (headers: Record<string, string>) => api.request(metricsPath('acme', DAY), { headers });

const ACCOUNT_PATHS = [
  'metrics',
  'metrics/enums/group-by',
  'metrics/enums/resource-types',
  'metrics/enums/billing-dimensions',
];

describe('without valid credentials', () => {
  it.each(ACCOUNT_PATHS.map((path) => `/v0/accounts/acme/${path}`).concat('/v0/accounts'))(
    '%s is 401',
    async (path) => {
      const answer = await api.request(path);
      expect(answer.status).toBe(401);
      expect(errorOf(answer).error).toBe('unauthorized');
      expect(answer.headers.get('www-authenticate')).toBe('Bearer realm="meterline"');
    },
  );

  it.each([
    'Bearer',
    'Bearer ',
    'Basic YTpi',
    'Bearer not-a-key',
    'Bearer two words',
    `Bearer mlk_${'0'.repeat(24)}_${'0'.repeat(64)}`,
  ])('%j is 401 with a challenge', async (authorization) => {
    const answer = await withHeaders({ authorization });
    expect(answer.status).toBe(401);
    expect(answer.headers.get('www-authenticate')).toMatch(/^Bearer realm="meterline", error="invalid_token"$/);
  });

  it('a key with one wrong digit is 401', async () => {
    const last = admin.endsWith('0') ? '1' : '0';
    expect((await ask(admin.slice(0, -1) + last)).status).toBe(401);
  });

  it('a revoked key is 401 at once', async () => {
    const key = await api.key('acme', 'admin', 'short-lived');
    expect((await ask(key)).status).toBe(200);
    await api.keys.revoke(key.split('_')[1] ?? '', new Date());
    expect((await ask(key)).status).toBe(401);
  });
});

describe('the two headers', () => {
  it('either one is enough, and the case of the scheme does not matter', async () => {
    for (const scheme of ['Bearer', 'bearer', 'BEARER']) {
      expect((await withHeaders({ authorization: `${scheme} ${admin}` })).status).toBe(200);
      expect((await withHeaders({ 'x-svc-authorization': `${scheme} ${admin}` })).status).toBe(200);
    }
  });

  it('both may say the same', async () => {
    const answer = await withHeaders({ authorization: `Bearer ${admin}`, 'x-svc-authorization': `bearer ${admin}` });
    expect(answer.status).toBe(200);
  });

  it.each(['Bearer other', 'Bearer', 'bearer two words'])('%j beside another bearer token is 400', async (other) => {
    for (const headers of [
      { authorization: `Bearer ${admin}`, 'x-svc-authorization': other },
      { authorization: other, 'x-svc-authorization': `Bearer ${admin}` },
    ]) {
      const answer = await withHeaders(headers);
      expect(answer.status).toBe(400);
      expect(errorOf(answer).error).toBe('conflicting_credentials');
    }
  });

  it.each(['Basic YTpi', 'Digest username="x"', 'x', ''])(
    '%j beside a bearer token is for something else',
    async (other) => {
      for (const headers of [
        { authorization: `Bearer ${admin}`, 'x-svc-authorization': other },
        { authorization: other, 'x-svc-authorization': `Bearer ${admin}` },
      ]) {
        expect((await withHeaders(headers)).status).toBe(200);
      }
    },
  );

  it.each(['Authorization', 'X-Svc-Authorization'])('two different %s have a message of their own', async (name) => {
    const send = (...values: string[]) => {
      const sent = values.map((value) => `${name}: ${value}\r\n`).join('');
      return sendBytes(api.url, `GET /v0/accounts HTTP/1.1\r\nHost: x\r\nConnection: close\r\n${sent}\r\n`, {
        keepsOpen: true,
      });
    };
    for (const other of ['Bearer other', 'Basic YTpi']) {
      const { status, body } = await send(`Bearer ${admin}`, other);
      const { error, message } = errorBody.parse(body);
      expect([status, error]).toEqual([400, 'conflicting_credentials']);
      expect(message).toContain(`2 ${name} headers`);
    }
    expect((await send(`Bearer ${admin}`, `Bearer ${admin}`)).status).toBe(200);
  });
});

describe('a stranger', () => {
  it.each(ACCOUNT_PATHS)(
    'gets the same 403 for %s of a foreign account and of one that does not exist',
    async (path) => {
      for (const account of ['acme', 'does-not-exist', 'GLOBEX', 'globex%20', 'a%2Fb', '__proto__', 'constructor']) {
        const answer = await api.request(
          `/v0/accounts/${account}/${path}?${new URLSearchParams(DAY)}`,
          bearer(stranger),
        );
        const { code, error, message } = errorOf(answer);
        expect([code, error, message]).toEqual([403, 'forbidden', 'Access denied']);
      }
    },
  );
});

describe('a member', () => {
  it('sees the account-wide aggregate', async () => {
    expect((await readMetrics(api, 'acme', member, DAY)).summary.totalCost).toBe(3);
  });

  it.each<Query>([
    { groupBy: 'resource_type' },
    { groupBy: 'resource_name' },
    { groupBy: 'resource_uuid,billing_dimension' },
    { resourceName: 'box' },
    { resourceType: 'sandbox' },
  ])('may ask for %j', async (query) => {
    expect((await ask(member, { ...DAY, ...query })).status).toBe(200);
  });

  it.each<Query>([
    { workspace: 'main' },
    { workspace: 'unknown' },
    { excludeWorkspace: 'main' },
    { groupBy: 'workspace' },
    { groupBy: 'resource_type,workspace' },
    { groupBy: 'billing_dimension,resource_name,workspace' },
  ])('may not ask for %j', async (query) => {
    const answer = await ask(member, { ...DAY, ...query });
    const { code, error, message } = errorOf(answer);
    expect([code, error, message]).toEqual([403, 'forbidden', 'Access denied']);
    expect((await ask(admin, { ...DAY, ...query })).status).toBe(200);
  });

  it.each([{ workspace: 'main' }, { excludeWorkspace: 'main' }])(
    'may not ask for the resource types of %j',
    async (query) => {
      const path = `/v0/accounts/acme/metrics/enums/resource-types?${new URLSearchParams({ ...DAY, ...query })}`;
      expect(errorOf(await api.request(path, bearer(member)))).toMatchObject({ code: 403, error: 'forbidden' });
      expect((await api.request(path, bearer(admin))).body).toEqual({ values: ['sandbox'] });
    },
  );

  it('never sees a workspace', async () => {
    for (const groupBy of ['resource_name', 'resource_uuid', 'resource_type,resource_name,billing_dimension']) {
      expect((await ask(member, { ...DAY, groupBy })).text).not.toContain('workspace');
    }
  });
});

describe('the order of checks', () => {
  const bad = { startTime: 'x' };
  const version = { 'svc-version': '1999-01-01' };
  const send = (token: string, headers: Record<string, string>, query: Record<string, string>) =>
    api.request(metricsPath('acme', query), { headers: { authorization: `Bearer ${token}`, ...headers } });

  it('is credentials, version, account, parameters, admin', async () => {
    expect(errorOf(await send('x', version, bad)).error).toBe('unauthorized');
    expect(errorOf(await send(stranger, version, bad)).error).toBe('invalid_api_version');
    expect(errorOf(await send(stranger, {}, bad)).error).toBe('forbidden');
    expect(errorOf(await send(member, {}, { ...bad, groupBy: 'workspace' })).error).toBe('invalid_parameter');
    expect(errorOf(await send(member, {}, { ...DAY, groupBy: 'workspace', cursor: 'x' })).error).toBe('invalid_cursor');
    expect(errorOf(await send(member, {}, { ...DAY, groupBy: 'workspace' })).error).toBe('forbidden');
  });
});

it('X-Svc-Workspace does not filter billing', async () => {
  const headers = { authorization: `Bearer ${member}`, 'x-svc-workspace': 'main' };
  const answer = await api.request(metricsPath('acme', DAY), { headers });
  expect(answer.text).toContain('"totalCost":3');
});
