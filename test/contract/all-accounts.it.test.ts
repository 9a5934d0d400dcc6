/** GET /v0/metrics: the accounts of a caller in one answer. */
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { createTokenVerifier } from '@meterline/api';
import { ALL_ACCOUNTS, MeterlineClient } from '@meterline/client';
import { pino } from 'pino';
import { bearer, DAY, errorOf, metricsBody, metricsPath, NOW, startApi, type TestApi } from '../harness/api.js';
import { event } from '../harness/events.js';
import { AUDIENCE, ISSUER, startTokenIssuer, type TokenIssuer } from './token-issuer.js';

let api: TestApi;
let issuer: TokenIssuer;
let operator: string;
/** Of acme and globex: an admin of both, or a member of the second. */
let admin: string;
let mixed: string;

beforeAll(async () => {
  issuer = await startTokenIssuer();
  const { jwksUrl } = issuer;
  const log = pino({ level: 'silent' });
  api = await startApi({
    tokens: createTokenVerifier({ jwksUrl, issuer: ISSUER, audience: AUDIENCE, clock: () => NOW, log }),
  });
  operator = await api.key('platform', 'operator');
  admin = await token({ acme: 'admin', globex: 'admin' });
  mixed = await token({ acme: 'admin', globex: 'member' });
  const costs = { acme: '3', globex: '2', initech: '100' };
  await api.seed(
    Object.entries(costs).flatMap(([accountId, cost]) => [
      event({ accountId, cost, workspace: 'main', resourceName: 'shared', resourceUuid: `${accountId}-1` }),
      event({ accountId, cost: '1', workspace: `of ${accountId}`, resourceName: `${accountId}-only` }),
    ]),
  );
});
afterAll(async () => {
  await api.stop();
  await issuer.close();
});

function token(accounts: Readonly<Record<string, string>>): Promise<string> {
  const exp = NOW.getTime() / 1_000 + 60;
  return issuer.sign({ iss: ISSUER, aud: AUDIENCE, sub: 'user-1', exp, scope: 'admin', accounts });
}

type Query = readonly (readonly [name: string, value: string])[];

function ask(credential: string, ...query: Query) {
  return api.request(
    `/v0/metrics?${new URLSearchParams([...Object.entries(DAY), ...query.map(([name, value]) => [name, value])])}`,
    bearer(credential),
  );
}

async function read(credential: string, ...query: Query) {
  const answer = await ask(credential, ...query);
  if (answer.status !== 200) throw new Error(answer.text);
  return metricsBody.parse(answer.body);
}

const costsBy = async (credential: string, member: 'account' | 'workspace' | 'resourceName', ...query: Query) =>
  (await read(credential, ...query)).data.map((entry) => [entry[member], entry.summary.cost]);

describe('metrics of all accounts', () => {
  it('have the accounts of the caller and no other, by cost', async () => {
    const byAccount = ['groupBy', 'account'] as const;
    expect(await costsBy(admin, 'account', byAccount)).toEqual([
      ['acme', 4],
      ['globex', 3],
    ]);
    expect((await read(admin)).summary).toEqual({ totalCost: 7 });
    expect((await read(await token({}))).summary).toEqual({ totalCost: 0 });
    expect(await costsBy(await api.key('acme'), 'account', byAccount)).toEqual([['acme', 4]]);
    expect(await costsBy(operator, 'account', byAccount, ['excludeAccount', 'acme'])).toEqual([
      ['initech', 101],
      ['globex', 3],
    ]);
  });

  it('add a dimension to the others, the first of three', async () => {
    const { data } = await read(
      admin,
      ['groupBy', 'billing_dimension,account,resource_name'],
      ['resourceName', 'shared'],
    );
    expect(data.map(({ timeseries: _, ...entry }) => entry)).toEqual(
      [
        ['acme', 3],
        ['globex', 2],
      ].map(([account, cost]) => ({
        account,
        workspace: 'main',
        resourceType: 'sandbox',
        resourceName: 'shared',
        billingDimension: 'sandbox_compute_runtime_gbs',
        summary: { cost, usage: 1 },
      })),
    );
  });

  it.each(['', 'workspace', 'resource_name', 'resource_uuid,billing_dimension'])(
    'of one account by groupBy=%s are to the byte what that account answers',
    async (groupBy) => {
      const query = groupBy === '' ? [] : ([['groupBy', groupBy]] as const);
      const one = await api.request(metricsPath('acme', { ...DAY, ...Object.fromEntries(query) }), bearer(admin));
      for (const credential of [admin, mixed, operator]) {
        expect((await ask(credential, ['account', 'acme'], ...query)).text).toBe(one.text);
      }
    },
  );

  it('show no workspace where the caller is a member of one of the accounts', async () => {
    const byName = ['groupBy', 'resource_name'] as const;
    const workspaces = async (credential: string, ...query: Query) =>
      (await read(credential, byName, ...query)).data.map(({ workspace }) => workspace);
    expect(await workspaces(admin)).toEqual(['main', 'of acme', 'of globex']);
    expect(await workspaces(mixed)).toEqual([undefined, undefined, undefined]);
    expect(await workspaces(mixed, ['account', 'acme'])).toEqual(['main', 'of acme']);
    expect(await workspaces(mixed, ['excludeAccount', 'globex'])).toEqual(['main', 'of acme']);
    expect(errorOf(await ask(mixed, ['groupBy', 'workspace'])).error).toBe('forbidden');
    expect(await costsBy(mixed, 'workspace', ['groupBy', 'workspace'], ['account', 'acme'])).toHaveLength(2);
  });

  it('cannot be made to show an account that is not the caller’s', async () => {
    const tries: Query[] = [
      [['account', 'initech']],
      [
        ['account', 'acme'],
        ['account', 'initech'],
      ],
      [['excludeAccount', 'initech']],
      [['account', "acme' OR '1'='1"]],
      [['account', 'ACME']],
    ];
    for (const query of tries) expect([query, (await ask(admin, ...query)).status]).toEqual([query, 403]);
    expect(errorOf(await ask(admin, ['account', '\0user-1'])).error).toBe('invalid_parameter');
    for (const query of [
      ['resourceName', 'initech-only'],
      ['resourceUuid', 'initech-1'],
      ['workspace', 'of initech'],
    ] as const) {
      const { text } = await ask(admin, query, ['groupBy', 'account,resource_uuid']);
      expect([query, text.includes('initech')]).toEqual([query, false]);
    }
  });

  it('have cursors and kept responses for these accounts and roles alone', async () => {
    const query: Query = [
      ['groupBy', 'account'],
      ['limit', '1'],
    ];
    const cursor = ['cursor', (await read(operator, ...query)).meta.nextCursor] as const;
    for (const credential of [admin, mixed]) {
      expect(errorOf(await ask(credential, ...query, cursor)).error).toBe('invalid_cursor');
    }
    const own = ['cursor', (await read(admin, ...query)).meta.nextCursor] as const;
    expect(errorOf(await ask(mixed, ...query, own)).error).toBe('invalid_cursor');
    expect(await costsBy(admin, 'account', ...query, own)).toEqual([['globex', 3]]);

    const cached = async (credential: string) => {
      const headers = { ...bearer(credential).headers, 'cache-control': 'max-age=300' };
      const search = new URLSearchParams({ ...DAY, groupBy: 'resource_name' });
      return (await api.request(`/v0/metrics?${search}`, { headers })).text;
    };
    const texts = await Promise.all([admin, mixed, operator].map(cached));
    expect(new Set([...texts, ...(await Promise.all([admin, mixed, operator].map(cached)))]).size).toBe(3);
  });

  it('come in pages of one answer while events arrive', async () => {
    const many = Array.from({ length: 250 }, (_, index) =>
      event({ accountId: index % 2 ? 'acme' : 'globex', at: '2025-09-01T00:00:00Z', resourceName: `box-${index}` }),
    );
    await api.seed(many);
    const client = new MeterlineClient({ baseUrl: api.url, credential: mixed, retries: 0 });
    const window = { startTime: '2025-09-01T00:00:00Z', endTime: '2025-09-02T00:00:00Z' };
    const found: string[] = [];
    for await (const page of client.metricsPages(ALL_ACCOUNTS, { ...window, groupBy: ['account', 'resource_name'] })) {
      expect(page.summary.totalCost).toBe('250');
      found.push(...page.data.map(({ account, resourceName }) => `${account} ${resourceName}`));
      await api.seed([event({ accountId: 'acme', at: '2025-09-01T12:00:00Z', resourceName: `late-${found.length}` })]);
    }
    const expected = many.map(({ accountId, resourceName }) => `${accountId} ${resourceName}`);
    expect(found.sort()).toEqual(expected.sort());
  });
});

describe('an operator', () => {
  it('has every registered account, as an admin of it, and may end its own key', async () => {
    for (const account of ['acme', 'globex', 'umbrella *?[]']) await api.key(account, 'member');
    const client = new MeterlineClient({ baseUrl: api.url, credential: operator, retries: 0 });
    expect((await client.accounts()).map(({ id, role }) => `${role} of ${id}`)).toEqual(
      ['acme', 'globex', 'platform', 'umbrella *?[]'].map((id) => `admin of ${id}`),
    );
    const path = `/v0/service_accounts/${encodeURIComponent('operator of platform')}/api_keys/${operator.split('_')[1]}`;
    expect((await api.request(path, { method: 'DELETE', ...bearer(operator) })).status).toBe(200);
    expect((await ask(operator)).status).toBe(401);
  });
});
