/** What a token says of accounts, in the forms that platforms have, and where a client finds out how to get one. */
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { createTokenVerifier, type TokenVerifier } from '@meterline/api';
import { readEnv } from '@meterline/query';
import { AccountDirectory } from '@meterline/service/access';
import { createWarehouse } from '@meterline/warehouse';
import { Redis } from 'ioredis';
import { pino } from 'pino';
import { z } from 'zod';
import { type Answer, bearer, errorOf, NOW, startApi, type TestApi } from '../harness/api.js';
import { testRedisUrl, uniquePrefix } from '../harness/stack.js';
import { sendBytes } from './raw-http.js';
import { AUDIENCE, ISSUER, startTokenIssuer, type TokenIssuer } from './token-issuer.js';

/** No question here is about usage. */
const warehouse = createWarehouse({
  url: 'http://127.0.0.1:1',
  user: 'default',
  password: '',
  database: 'meterline',
  application: 'meterline-test',
});
const redis = new Redis(testRedisUrl());
let issuer: TokenIssuer;

beforeAll(async () => {
  issuer = await startTokenIssuer();
});
afterAll(async () => {
  await issuer.close();
  await warehouse.close();
  redis.disconnect();
});

const CLAIMS = { iss: ISSUER, aud: AUDIENCE, sub: 'user-1', exp: NOW.getTime() / 1_000 + 60, scope: 'admin' };
const token = (claims: Record<string, unknown>) => issuer.sign({ ...CLAIMS, ...claims });

/** As the service makes it of these variables. */
function verifier(variables: Record<string, string>): TokenVerifier {
  const required = { AUTH_JWKS_URL: issuer.jwksUrl, AUTH_ISSUER: ISSUER, AUTH_AUDIENCE: AUDIENCE };
  const { tokens } = readEnv({ CURSOR_SECRET: 'x'.repeat(32), ...required, ...variables });
  if (!tokens) throw new Error('no tokens');
  return createTokenVerifier({ ...tokens, clock: () => NOW, log: pino({ level: 'silent' }) });
}

/** An API that reads tokens as these variables say, and what it makes of a token. */
async function reading<T>(
  variables: Record<string, string>,
  work: (ask: (claims: Record<string, unknown>) => Promise<Answer>) => Promise<T>,
): Promise<T> {
  const configured = await startApi({ warehouse, tokens: verifier(variables) });
  try {
    return await work(async (claims) => configured.request('/v0/accounts', bearer(await token(claims))));
  } finally {
    await configured.stop();
  }
}

describe('the accounts of a token', () => {
  const ADMIN_AND_MEMBER = ['acme admin', 'globex member'];
  const accounts = z.array(z.object({ id: z.string(), role: z.string() }));
  const URL_CLAIM = 'https://platform.example.com/accounts';
  const ROLES = { AUTH_ADMIN_ROLES: 'admin, owner' };

  it.each<[what: string, variables: Record<string, string>, claims: Record<string, unknown>, expected: string[]]>([
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
    [
      'a list of ids, of which each is a member',
      {},
      { accounts: ['acme', 'globex'] },
      ['acme member', 'globex member'],
    ],
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
      ROLES,
      { accounts: { acme: 'owner', globex: 'viewer', initech: 'admin', umbrella: 'Owner' } },
      ['acme admin', 'globex member', 'initech admin', 'umbrella member'],
    ],
  ])('the accounts of a token may be %s', async (_what, variables, claims, expected) => {
    const answer = await reading(variables, (listAccounts) => listAccounts(claims));
    expect(
      accounts
        .parse(answer.body)
        .map(({ id, role }) => `${id} ${role}`)
        .sort(),
    ).toEqual(expected);
  });

  it('the accounts of a token are refused with 401 and the form that they should have, where they have another', async () => {
    const FORMS =
      'must be an object of account ids and roles, a list of objects with id and role, or a list of ids, all of them texts.';
    await reading({ AUTH_ACCOUNTS_CLAIM: 'app.accounts' }, async (listAccounts) => {
      const refusal = async (app: unknown) => {
        const { code, error, message } = errorOf(await listAccounts({ app }));
        expect([code, error]).toEqual([401, 'unauthorized']);
        return message.replace("The token's claim ", '');
      };
      for (const malformed of [
        'acme',
        null,
        7,
        { acme: 1 },
        { acme: '' },
        { '': 'admin' },
        { acme: ['admin'] },
        ['acme', { id: 'globex', role: 'admin' }],
        [{ id: 'acme' }],
        [{ id: 7, role: 'admin' }],
        [['acme', 'admin']],
        ['a\u0000b'],
      ]) {
        expect(await refusal({ accounts: malformed })).toBe(`app.accounts ${FORMS}`);
      }
      const twice = [
        { id: 'acme', role: 'member' },
        { id: 'acme', role: 'admin' },
      ];
      expect(await refusal({ accounts: twice })).toBe('app.accounts names the account "acme" twice.');
      expect(await refusal(['accounts'])).toBe('app must be an object.');
      expect(await refusal(null)).toBe('app must be an object.');
    });
  });

  it('the accounts of a token may have names, in a claim of their own or beside the roles', async () => {
    const names = z.array(z.object({ id: z.string(), name: z.string() }));
    const named = async (claim: string, claims: Record<string, unknown>) => {
      const answer = await reading({ AUTH_ACCOUNT_NAMES_CLAIM: claim }, (listAccounts) => listAccounts(claims));
      return names.parse(answer.body).map(({ id, name }) => `${id}: ${name}`);
    };
    const roles = { acme: 'admin', globex: 'member' };
    expect(await named('names', { accounts: roles, names: { acme: 'ACME Corp.', other: 'Other' } })).toEqual([
      'acme: ACME Corp.',
      'globex: globex',
    ]);
    const list = [
      { id: 'acme', role: 'admin', name: 'ACME Corp.' },
      { id: 'globex', role: 'member' },
    ];
    expect(await named('accounts', { accounts: list })).toEqual(['acme: ACME Corp.', 'globex: globex']);
    expect(await named('names', { accounts: roles })).toEqual(['acme: acme', 'globex: globex']);
    await expect(named('names', { accounts: roles, names: 'ACME' })).rejects.toThrow();
    const malformed = await reading({ AUTH_ACCOUNT_NAMES_CLAIM: 'names' }, (listAccounts) =>
      listAccounts({ accounts: roles, names: ['ACME'] }),
    );
    expect([malformed.status, errorOf(malformed).message]).toEqual([
      401,
      "The token's claim names must be an object of account ids and names, or a list of objects with id and name, all of them texts.",
    ]);
  });

  it('the accounts of a token that gives no names have the registered ones', async () => {
    const accounts = new AccountDirectory(redis, uniquePrefix());
    await accounts.register('initech', NOW, 'Initech, Inc.');
    const registered = await startApi({ warehouse, accounts, tokens: verifier({ AUTH_ACCOUNT_NAMES_CLAIM: 'names' }) });
    try {
      const listed = async (names: Record<string, string>) =>
        (await registered.request('/v0/accounts', bearer(await token({ accounts: ['initech'], names })))).body;
      const entry = { id: 'initech', role: 'member', createdAt: NOW.toISOString() };
      expect(await listed({})).toEqual([{ ...entry, name: 'Initech, Inc.' }]);
      expect(await listed({ initech: 'Initech' })).toEqual([{ ...entry, name: 'Initech' }]);
      expect(await listed({})).toEqual([{ ...entry, name: 'Initech, Inc.' }]);
    } finally {
      await registered.stop();
    }
  });
});

describe('where tokens come from', () => {
  const PATH = '/.well-known/oauth-protected-resource';
  const BILLING = 'https://billing.example.com';
  const serving = async <T>(publicUrl: string | undefined, work: (server: TestApi) => Promise<T>): Promise<T> => {
    const protectedResource = { issuer: ISSUER, publicUrl };
    const server = await startApi({ warehouse, tokens: verifier({}), protectedResource, trustProxy: 1 });
    try {
      return await work(server);
    } finally {
      await server.stop();
    }
  };

  it('where tokens come from is said under the public address of the API, whatever the request was sent to', async () => {
    await serving(BILLING, async (server) => {
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
      for (const [headers, challenge] of [
        [{}, 'Bearer realm="meterline"'],
        [bearer('x').headers, 'Bearer realm="meterline", error="invalid_token"'],
        [
          bearer(await token({ scope: 'jobs:list' })).headers,
          'Bearer realm="meterline", error="insufficient_scope", scope="admin"',
        ],
      ] as const) {
        const refused = await server.request('/v0/accounts', { headers });
        expect(refused.headers.get('www-authenticate')).toBe(`${challenge}, resource_metadata="${BILLING}${PATH}"`);
      }
    });
  });

  it('where tokens come from is otherwise said under the address of the request, as the proxy has it', async () => {
    await serving(undefined, async (server) => {
      expect((await server.request(PATH)).body).toMatchObject({ resource: server.url });
      const headers = { 'x-forwarded-proto': 'https', 'x-forwarded-host': 'billing.example.com' };
      expect((await server.request(PATH, { headers })).body).toMatchObject({ resource: BILLING });
      const refused = await server.request('/v0/accounts', { headers });
      expect(refused.headers.get('www-authenticate')).toContain(`resource_metadata="${BILLING}${PATH}"`);
    });
  });

  it('where tokens come from is nothing that a Host could smuggle into a header', async () => {
    await serving(undefined, async (server) => {
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
    const keysOnly = await startApi({ warehouse });
    try {
      const answer = await keysOnly.request(PATH);
      expect([answer.status, errorOf(answer).error]).toEqual([404, 'not_found']);
      const refused = await keysOnly.request('/v0/accounts');
      expect(refused.headers.get('www-authenticate')).toBe('Bearer realm="meterline"');
    } finally {
      await keysOnly.stop();
    }
  });
});
