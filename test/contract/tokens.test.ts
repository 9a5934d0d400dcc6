import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { type RunningServer, startServer } from '@meterline/api';
import { createTokenVerifier } from '@meterline/api/tokens';
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
  createTokenVerifier({
    jwksUrl: url,
    issuer: ISSUER,
    audience: AUDIENCE,
    keptMs: 60_000,
    clock: () => NOW,
    log: pino({ level: 'silent' }),
  });

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
    [{ scope: undefined, scp: 'jobs:list admin' }],
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

  it('and says which claim is not what it should be', async () => {
    const messageOf = async (claims: Record<string, unknown>) => errorOf(await ask(await token(claims))).message;
    expect(await messageOf({ accounts: 'acme' })).toBe(
      "The token's claim accounts must be an object of account ids and roles, a list of objects with id and role, or a list of ids, all of them texts.",
    );
    expect(await messageOf({ scope: 7 })).toBe("The token's claim scope must be a text or a list of texts.");
    expect(await messageOf({ sub: '' })).toBe("The token's claim sub must not be empty.");
    // Only those who have a valid signature learn so much.
    const { privateKey } = await generateKeyPair('RS256');
    expect(errorOf(await ask(await token({ accounts: 'acme' }, privateKey))).message).toContain('unknown, revoked or');
  });

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

it('while the published keys are away, a token of a known key is accepted, and one of an unknown key is 401', async () => {
  const { origin, pathname } = new URL(jwksUrl);
  let isAway = false;
  const log = pino({ level: 'silent' });
  const published = await startServer(
    async (_request, response) => {
      if (isAway) response.writeHead(502).end();
      else response.end(await (await fetch(`${origin}${pathname}`)).text());
    },
    { port: 0, log },
  );
  const tokens = verifier(`http://127.0.0.1:${published.port}/`);
  const cut = await startApi({ warehouse: api.dependencies.warehouse, tokens });
  try {
    const statusOf = async (text: string) => (await cut.request(metricsPath('acme', DAY), bearer(text))).status;
    expect(await statusOf(await token())).toBe(200);
    isAway = true;
    expect(await statusOf(await token())).toBe(200);
    expect(await statusOf(await token({}, keys.privateKey, { alg: 'RS256', kid: 'two' }))).toBe(401);
    expect(await statusOf(await token({}, (await generateKeyPair('RS256')).privateKey))).toBe(401);
  } finally {
    await cut.stop();
    await published.close(0);
  }
});

describe('a cursor', () => {
  it('belongs to account and role, not to a token or its subject', async () => {
    await api.seed([event({ workspace: 'b' })]);
    const query = { ...DAY, groupBy: 'workspace', limit: '1' };
    const first = await ask(await token(), 'acme', query);
    const cursor = /"nextCursor":"([^"]+)"/.exec(first.text)?.[1] ?? '';
    expect((await ask(await token({ exp: seconds + 90 }), 'acme', { ...query, cursor })).status).toBe(200);
    expect((await ask(await token({ sub: 'user-2' }), 'acme', { ...query, cursor })).status).toBe(200);
    const member = await token({ sub: 'user-3', accounts: { acme: 'member' } });
    expect(errorOf(await ask(member, 'acme', { ...query, cursor })).error).toBe('invalid_cursor');
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
      // No key of it was ever created.
      { id: 'globex', name: 'globex', role: 'member' },
    ]);
    const again = await api.request('/v0/accounts', bearer(await token()));
    expect(again.body).toEqual(answer.body);
  });
});
