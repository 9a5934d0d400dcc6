/**
 * What the API reads in a token, in the forms that platforms have, and where a client finds out how to get one. Which tokens are rejected
 * is in the authorisation matrix.
 */
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { createTokenVerifier, type TokenVerifier } from '@meterline/api';
import { type QueryDependencies, readEnv } from '@meterline/query';
import { AccountDirectory } from '@meterline/service/access';
import { createWarehouse } from '@meterline/warehouse';
import { Redis } from 'ioredis';
import { pino } from 'pino';
import { z } from 'zod';
import { bearer, errorOf, NOW, startApi, type TestApi } from '../harness/api.js';
import { testRedisUrl, uniquePrefix } from '../harness/stack.js';
import { ISSUER, startTokenIssuer, type TokenIssuer } from './callers.js';
import { sendBytes } from './raw-http.js';

type Claims = Readonly<Record<string, unknown>>;

/** No query here is about usage. */
const warehouse = createWarehouse({
  ...{ url: 'http://127.0.0.1:1', user: 'default', password: '', database: 'meterline' },
  application: 'meterline-test',
});
const redis = new Redis(testRedisUrl());
let issuer: TokenIssuer;

beforeAll(async () => {
  issuer = await startTokenIssuer(NOW);
});
afterAll(async () => {
  await issuer.close();
  await warehouse.close();
  redis.disconnect();
});

/** As the service makes it of these variables. */
function verifier(variables: Readonly<Record<string, string>> = {}): TokenVerifier {
  const { tokens } = readEnv({ CURSOR_SECRET: 'x'.repeat(32), ...issuer.env, ...variables });
  if (!tokens) throw new Error('no tokens');
  return createTokenVerifier({ ...tokens, clock: () => NOW, log: pino({ level: 'silent' }) });
}

async function serving<T>(replace: Partial<QueryDependencies>, work: (server: TestApi) => Promise<T>): Promise<T> {
  const server = await startApi({ warehouse, ...replace });
  try {
    return await work(server);
  } finally {
    await server.stop();
  }
}

/** What an API that reads tokens as these variables say makes of one. */
const listed = (variables: Readonly<Record<string, string>>, claims: Claims) =>
  serving({ tokens: verifier(variables) }, async (server) =>
    server.request('/v0/accounts', bearer(await issuer.sign(claims))),
  );

it.each([
  [{ scope: 'jobs:list admin' }],
  [{ scope: undefined, scopes: ['admin'] }],
  [{ scope: '', scp: ['jobs:list', 'admin'] }],
  [{ scope: undefined, scp: 'jobs:list admin' }],
])('a token may carry its scopes as %j', async (claims) => {
  expect((await listed({}, { ...claims, accounts: {} })).status).toBe(200);
});

const ADMIN_AND_MEMBER = ['acme admin', 'globex member'];
const URL_CLAIM = 'https://platform.example.com/accounts';
const entries = z.array(z.object({ id: z.string(), role: z.string(), name: z.string() }));

it.each<[what: string, variables: Record<string, string>, claims: Claims, expected: string[]]>([
  ['an object', {}, { accounts: { acme: 'admin', globex: 'member' } }, ADMIN_AND_MEMBER],
  [
    'a list of objects, with more in them',
    {},
    {
      accounts: [
        { id: 'acme', role: 'admin', plan: 'pro' },
        { id: 'globex', role: 'member' },
      ],
    },
    ADMIN_AND_MEMBER,
  ],
  ['a list of ids, of which each is a member', {}, { accounts: ['acme', 'globex'] }, ['acme member', 'globex member']],
  ['an empty list', {}, { accounts: [] }, []],
  [
    'a claim of another name',
    { AUTH_ACCOUNTS_CLAIM: 'orgs' },
    { orgs: { acme: 'admin' }, accounts: { globex: 'admin' } },
    ['acme admin'],
  ],
  [
    'a claim in an object',
    { AUTH_ACCOUNTS_CLAIM: 'app_metadata.billing.accounts' },
    { app_metadata: { billing: { accounts: { acme: 'admin' } } } },
    ['acme admin'],
  ],
  ['a claim that is a URL', { AUTH_ACCOUNTS_CLAIM: URL_CLAIM }, { [URL_CLAIM]: { acme: 'admin' } }, ['acme admin']],
  ['a claim that is not there', { AUTH_ACCOUNTS_CLAIM: 'app_metadata.accounts' }, { app_metadata: {} }, []],
  ['nothing of what every object has', { AUTH_ACCOUNTS_CLAIM: 'constructor.prototype' }, {}, []],
  ['an unknown role, which is none', {}, { accounts: { acme: 'owner', globex: 'member' } }, ['globex member']],
  [
    'roles of the platform, of which some are admins’',
    { AUTH_ADMIN_ROLES: 'admin, billing owner' },
    { accounts: { acme: 'billing owner', globex: 'viewer', initech: 'admin', umbrella: 'Billing owner' } },
    ['acme admin', 'globex member', 'initech admin', 'umbrella member'],
  ],
])('the accounts of a token may be %s', async (_what, variables, claims, expected) => {
  const accounts = entries.parse((await listed(variables, claims)).body);
  expect(accounts.map(({ id, role }) => `${id} ${role}`).sort()).toEqual(expected);
});

const ROLES = { acme: 'admin', globex: 'member' };

it.each<[claim: string, claims: Claims, expected: string[]]>([
  ['names', { accounts: ROLES, names: { acme: 'ACME Corp.', other: 'Other' } }, ['ACME Corp.', 'globex']],
  [
    'accounts',
    {
      accounts: [
        { id: 'acme', role: 'admin', name: 'ACME Corp.' },
        { id: 'globex', role: 'member' },
      ],
    },
    ['ACME Corp.', 'globex'],
  ],
  ['names', { accounts: ROLES }, ['acme', 'globex']],
])('the names of the accounts may be in the claim %s, as %j', async (claim, claims, expected) => {
  const { body } = await listed({ AUTH_ACCOUNT_NAMES_CLAIM: claim }, claims);
  expect(entries.parse(body).map(({ name }) => name)).toEqual(expected);
});

it('the names of the accounts are the registered ones where the token gives none', async () => {
  const accounts = new AccountDirectory(redis, uniquePrefix());
  await accounts.register('initech', NOW, 'Initech, Inc.');
  await serving({ accounts, tokens: verifier({ AUTH_ACCOUNT_NAMES_CLAIM: 'names' }) }, async (server) => {
    for (const [names, name] of [
      [{}, 'Initech, Inc.'],
      [{ initech: 'Initech' }, 'Initech'],
      [{}, 'Initech, Inc.'],
    ] as const) {
      const { body } = await server.request(
        '/v0/accounts',
        bearer(await issuer.sign({ accounts: ['initech'], names })),
      );
      expect(body).toEqual([{ id: 'initech', role: 'member', createdAt: NOW.toISOString(), name }]);
    }
  });
});

const FORMS =
  'app.accounts must be an object of account ids and roles, a list of objects with id and role, or a list of ids, all of them texts.';
const TWICE = [
  { id: 'acme', role: 'member' },
  { id: 'acme', role: 'admin' },
];

it('a token with a valid signature is told which claim is not what it should be, and no other token is', async () => {
  const variables = { AUTH_ACCOUNTS_CLAIM: 'app.accounts', AUTH_ACCOUNT_NAMES_CLAIM: 'names' };
  await serving({ tokens: verifier(variables) }, async (server) => {
    const rejection = async (token: string) => {
      const { code, error, message } = errorOf(await server.request('/v0/accounts', bearer(token)));
      expect([code, error]).toEqual([401, 'unauthorized']);
      return message;
    };
    const malformed = [
      ...['acme', null, 7, { acme: 1 }, { acme: '' }, { '': 'admin' }, { acme: ['admin'] }],
      ...[['acme', { id: 'globex', role: 'admin' }], [{ id: 'acme' }], [{ id: 7, role: 'admin' }], [['acme', 'admin']]],
      ['a\u0000b'],
    ];
    for (const [claims, message] of [
      ...malformed.map((accounts) => [{ app: { accounts } }, FORMS] as const),
      [{ app: { accounts: TWICE } }, 'app.accounts names the account "acme" twice.'],
      [{ app: ['accounts'] }, 'app must be an object.'],
      [{ app: null }, 'app must be an object.'],
      [{ scope: 7 }, 'scope must be a text or a list of texts.'],
      [{ sub: '' }, 'sub must not be empty.'],
      [
        { app: { accounts: ROLES }, names: ['ACME'] },
        'names must be an object of account ids and names, or a list of objects with id and name, all of them texts.',
      ],
    ] as const) {
      expect([claims, await rejection(await issuer.sign(claims))]).toEqual([claims, `The token's claim ${message}`]);
    }
    expect(await rejection(await issuer.forge({ app: null }))).toContain('unknown, revoked or');
  });
});

it('a token is 503 when the published keys cannot be read, and an API key still works', async () => {
  await serving({}, async (other) => {
    for (const url of ['http://127.0.0.1:1/jwks.json', `${other.url}/healthz`, `${other.url}/nope`]) {
      await serving({ tokens: verifier({ AUTH_JWKS_URL: url }) }, async (server) => {
        const response = await server.request('/v0/accounts', bearer(await issuer.sign({})));
        expect([url, response.status, errorOf(response).error]).toEqual([url, 503, 'auth_unavailable']);
        expect(response.headers.get('retry-after')).toBe('5');
        expect((await server.request('/v0/accounts', bearer(await server.key('acme')))).status).toBe(200);
      });
    }
  });
});

describe('where tokens come from', () => {
  const PATH = '/.well-known/oauth-protected-resource';
  const BILLING = 'https://billing.example.com';
  const servingAt = (publicUrl: string | undefined, work: (server: TestApi) => Promise<void>) =>
    serving({ tokens: issuer.verifier, protectedResource: { issuer: ISSUER, publicUrl }, trustProxy: 1 }, work);

  it('where tokens come from is said under the public address of the API, whatever the request was sent to', async () => {
    await servingAt(BILLING, async (server) => {
      const { status, body } = await server.request(PATH);
      expect([status, body]).toEqual([
        200,
        {
          resource: BILLING,
          authorization_servers: [ISSUER],
          scopes_supported: ['admin', 'apiKey:list', 'apiKey:write'],
          bearer_methods_supported: ['header'],
          resource_name: 'Meterline',
          resource_documentation: `${BILLING}/docs`,
        },
      ]);
      for (const [headers, problem] of [
        [{}, ''],
        [bearer('x').headers, ', error="invalid_token"'],
        [bearer(await issuer.sign({ scope: 'jobs:list' })).headers, ', error="insufficient_scope", scope="admin"'],
      ] as const) {
        const challenge = (await server.request('/v0/accounts', { headers })).headers.get('www-authenticate');
        expect(challenge).toBe(`Bearer realm="meterline"${problem}, resource_metadata="${BILLING}${PATH}"`);
      }
    });
  });

  it('where tokens come from is otherwise said under the address of the request, as the proxy has it', async () => {
    await servingAt(undefined, async (server) => {
      expect((await server.request(PATH)).body).toMatchObject({ resource: server.url });
      const headers = { 'x-forwarded-proto': 'https', 'x-forwarded-host': 'billing.example.com' };
      expect((await server.request(PATH, { headers })).body).toMatchObject({ resource: BILLING });
      const refused = await server.request('/v0/accounts', { headers });
      expect(refused.headers.get('www-authenticate')).toContain(`resource_metadata="${BILLING}${PATH}"`);
    });
  });

  it('where tokens come from is nothing that a Host could smuggle into a header', async () => {
    await servingAt(undefined, async (server) => {
      const get = (path: string) =>
        sendBytes(server.url, `GET ${path} HTTP/1.1\r\nHost: a", x="\r\nConnection: close\r\n\r\n`, {
          keepsOpen: true,
        });
      expect((await get(PATH)).status).toBe(400);
      const { status, head } = await get('/v0/accounts');
      expect(status).toBe(401);
      expect(head).toMatch(/^WWW-Authenticate: Bearer realm="meterline"\r$/m);
    });
  });

  it('where tokens come from is 404 where tokens are not accepted, and no challenge names it', async () => {
    await serving({}, async (server) => {
      const response = await server.request(PATH);
      expect([response.status, errorOf(response).error]).toEqual([404, 'not_found']);
      const { status, headers } = await server.request('/v0/accounts', bearer(await issuer.sign({ accounts: ROLES })));
      expect([status, headers.get('www-authenticate')]).toEqual([
        401,
        'Bearer realm="meterline", error="invalid_token"',
      ]);
    });
  });
});
