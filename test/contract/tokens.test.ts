import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { createTokenVerifier, type RunningServer, startServer } from '@meterline/query';
import { exportJWK, type GenerateKeyPairResult, generateKeyPair, SignJWT } from 'jose';
import { pino } from 'pino';
import { bearer, DAY, errorOf, event, metricsPath, NOW, startApi, type TestApi } from './fixture.js';

const ISSUER = 'https://auth.example.com/';
const AUDIENCE = 'meterline';

let jwks: RunningServer;
let jwksUrl: string;
let keys: GenerateKeyPairResult;
let api: TestApi;

beforeAll(async () => {
  keys = await generateKeyPair('RS256');
  const published = { keys: [{ ...(await exportJWK(keys.publicKey)), kid: 'one', alg: 'RS256', use: 'sig' }] };
  const log = pino({ level: 'silent' });
  jwks = await startServer((_request, response) => response.end(JSON.stringify(published)), { port: 0, log });
  jwksUrl = `http://127.0.0.1:${jwks.port}/jwks.json`;
  api = await startApi({ tokens: verifier(jwksUrl) });
  await api.seed([event({ cost: '1' }), event({ accountId: 'globex', cost: '2' })]);
});
afterAll(async () => {
  await api.stop();
  await jwks.close(0);
});

const verifier = (url: string) =>
  createTokenVerifier({ jwksUrl: url, issuer: ISSUER, audience: AUDIENCE, clock: () => NOW });

const seconds = Math.floor(NOW.getTime() / 1000);
const CLAIMS = {
  iss: ISSUER,
  aud: AUDIENCE,
  sub: 'user-1',
  exp: seconds + 60,
  scope: 'jobs:list admin',
  accounts: { acme: 'admin', globex: 'member' },
};

function token(claims: Record<string, unknown> = {}, key = keys.privateKey, header = { alg: 'RS256', kid: 'one' }) {
  return new SignJWT({ ...CLAIMS, ...claims }).setProtectedHeader(header).sign(key);
}

const ask = (text: string, account = 'acme', query: Record<string, string> = DAY) =>
  api.request(metricsPath(account, query), bearer(text));

describe('a token', () => {
  it('of an admin sees the account, by workspace too', async () => {
    expect((await ask(await token(), 'acme', { ...DAY, groupBy: 'workspace' })).status).toBe(200);
  });

  it('of a member sees the aggregate, but not by workspace', async () => {
    const member = await token();
    expect((await ask(member, 'globex')).status).toBe(200);
    expect((await ask(member, 'globex', { ...DAY, groupBy: 'workspace' })).status).toBe(403);
  });

  it.each([[{}], [{ accounts: {} }], [{ accounts: { acme: 'owner' } }], [{ accounts: { ACME: 'admin' } }]])(
    'that names no role of ours in the account, such as %j, is 403',
    async (claims) => {
      const account = 'accounts' in claims ? 'acme' : 'initech';
      const { code, message } = errorOf(await ask(await token(claims), account));
      expect([code, message]).toEqual([403, 'Access denied']);
    },
  );

  it('without accounts belongs to none', async () => {
    expect((await ask(await token({ accounts: undefined }))).status).toBe(403);
  });

  it.each([
    [{ scope: 'admin' }],
    [{ scope: undefined, scopes: ['admin'] }],
    [{ scope: '', scp: ['jobs:list', 'admin'] }],
  ])('may carry its scopes as %j', async (claims) => {
    expect((await ask(await token(claims))).status).toBe(200);
  });

  it.each([
    [{ scope: 'jobs:list' }],
    [{ scope: undefined }],
    [{ scope: 'administrator' }],
    [{ scope: 'apiKey:write' }],
  ])('without the scope admin, with %j, is 403', async (claims) => {
    const answer = await ask(await token(claims));
    const { code, error } = errorOf(answer);
    expect([code, error]).toEqual([403, 'insufficient_scope']);
    expect(answer.headers.get('www-authenticate')).toContain('error="insufficient_scope", scope="admin"');
  });
});

describe('a token is 401', () => {
  const refused = async (text: string) => {
    const answer = await ask(text);
    expect([answer.status, errorOf(answer).error]).toEqual([401, 'unauthorized']);
  };

  it.each([
    ['it has expired', { exp: seconds - 1 }],
    ['it never expires', { exp: undefined }],
    ['it is not valid yet', { nbf: seconds + 60 }],
    ['it is of another issuer', { iss: 'https://evil.example.com/' }],
    ['it is for another audience', { aud: 'somebody-else' }],
    ['it has no subject', { sub: undefined }],
    ['its subject is empty', { sub: '' }],
    ['its accounts are no object', { accounts: 'acme' }],
    ['its scope is no string', { scope: 7 }],
  ])('if %s', async (_why, claims) => refused(await token(claims)));

  it('if another key signed it', async () => refused(await token({}, (await generateKeyPair('RS256')).privateKey)));

  it('if its key is not published', async () =>
    refused(await token({}, keys.privateKey, { alg: 'RS256', kid: 'two' })));

  it('if it is signed with a shared secret', async () => {
    const secret = new TextEncoder().encode(JSON.stringify(await exportJWK(keys.publicKey)));
    await refused(await new SignJWT(CLAIMS).setProtectedHeader({ alg: 'HS256', kid: 'one' }).sign(secret));
  });

  it('if it is not signed', async () => {
    const parts = [{ alg: 'none' }, CLAIMS].map((part) => Buffer.from(JSON.stringify(part)).toString('base64url'));
    await refused(`${parts.join('.')}.`);
  });

  it('if a character of it was changed', async () => {
    const [header, , signature] = (await token()).split('.');
    const claims = Buffer.from(JSON.stringify({ ...CLAIMS, accounts: { other: 'admin' } })).toString('base64url');
    await refused(`${header}.${claims}.${signature}`);
  });

  it('if the service knows no issuer', async () => {
    const keysOnly = await startApi({ warehouse: api.dependencies.warehouse });
    try {
      expect((await keysOnly.request('/v0/accounts', bearer(await token()))).status).toBe(401);
    } finally {
      await keysOnly.stop();
    }
  });
});

describe('when the published keys cannot be read', () => {
  it.each([
    ['nothing listens there', () => 'http://127.0.0.1:1/jwks.json'],
    ['something else is there', () => `${api.url}/healthz`],
    ['it is not found', () => `${api.url}/nope`],
  ])('because %s, a token is 503 and an API key still works', async (_why, url) => {
    const cut = await startApi({ warehouse: api.dependencies.warehouse, tokens: verifier(url()) });
    try {
      const answer = await cut.request(metricsPath('acme', DAY), bearer(await token()));
      expect([answer.status, errorOf(answer).error]).toEqual([503, 'auth_unavailable']);
      expect(answer.headers.get('retry-after')).toBe('5');
      expect((await cut.request(metricsPath('acme', DAY), bearer(await cut.key('acme')))).status).toBe(200);
    } finally {
      await cut.stop();
    }
  });
});

describe('a cursor', () => {
  it('belongs to the subject, not to the token', async () => {
    await api.seed([event({ workspace: 'b' })]);
    const query = { ...DAY, groupBy: 'workspace', limit: '1' };
    const first = await ask(await token(), 'acme', query);
    const cursor = /"nextCursor":"([^"]+)"/.exec(first.text)?.[1] ?? '';
    expect((await ask(await token({ exp: seconds + 90 }), 'acme', { ...query, cursor })).status).toBe(200);
    const foreign = await ask(await token({ sub: 'user-2' }), 'acme', { ...query, cursor });
    expect(errorOf(foreign).error).toBe('invalid_cursor');
  });
});

describe('revoking a key with a token', () => {
  const revoke = async (claims: Record<string, unknown>) => {
    const key = await api.key('acme', 'member', 'robot');
    const path = `/v0/service_accounts/robot/api_keys/${key.split('_')[1]}`;
    return (await api.request(path, { method: 'DELETE', ...bearer(await token(claims)) })).status;
  };

  it('needs the scope apiKey:write; admin is not enough', async () => {
    expect(await revoke({ scope: 'apiKey:write' })).toBe(200);
    expect(await revoke({ scope: 'admin' })).toBe(403);
  });

  it('needs an admin of the owning account', async () => {
    expect(await revoke({ scope: 'apiKey:write', accounts: { acme: 'member' } })).toBe(404);
    expect(await revoke({ scope: 'apiKey:write', accounts: { globex: 'admin' } })).toBe(404);
  });
});

describe('GET /v0/accounts with a token', () => {
  it('lists every account that the token names', async () => {
    const answer = await api.request('/v0/accounts', bearer(await token()));
    expect(answer.body).toEqual([
      { id: 'acme', name: 'acme', role: 'admin', createdAt: expect.any(String) },
      { id: 'globex', name: 'globex', role: 'member', createdAt: expect.any(String) },
    ]);
  });
});
