/** What the API reads in a token besides its accounts. Which tokens are refused is in the authorisation matrix. */
import { afterAll, beforeAll, expect, it } from '@jest/globals';
import { createTokenVerifier } from '@meterline/api';
import { pino } from 'pino';
import { bearer, DAY, errorOf, metricsPath, NOW, startApi, type TestApi } from '../harness/api.js';
import { event } from '../harness/events.js';
import { AUDIENCE, ISSUER, startTokenIssuer, type TokenIssuer } from './token-issuer.js';

let issuer: TokenIssuer;
let api: TestApi;

beforeAll(async () => {
  issuer = await startTokenIssuer();
  api = await startApi({ tokens: verifier(issuer.jwksUrl) });
  await api.seed([event({ cost: '1' }), event({ workspace: 'b' }), event({ accountId: 'globex', cost: '2' })]);
});
afterAll(async () => {
  await api.stop();
  await issuer.close();
});

const verifier = (jwksUrl: string) =>
  createTokenVerifier({
    ...{ jwksUrl, issuer: ISSUER, audience: AUDIENCE },
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
const token = (claims: Record<string, unknown> = {}) => issuer.sign({ ...CLAIMS, ...claims });
const ask = (text: string, query: Record<string, string> = DAY) =>
  api.request(metricsPath('acme', query), bearer(text));

it.each([
  [{ scope: 'admin' }],
  [{ scope: undefined, scopes: ['admin'] }],
  [{ scope: '', scp: ['jobs:list', 'admin'] }],
  [{ scope: undefined, scp: 'jobs:list admin' }],
])('a token may carry its scopes as %j', async (claims) => {
  expect((await ask(await token(claims))).status).toBe(200);
});

it('a token with a valid signature is told which claim is not what it should be, and no other token is', async () => {
  const messageOf = async (claims: Record<string, unknown>) => errorOf(await ask(await token(claims))).message;
  expect(await messageOf({ accounts: 'acme' })).toBe(
    "The token's claim accounts must be an object of account ids and roles, a list of objects with id and role, or a list of ids, all of them texts.",
  );
  expect(await messageOf({ scope: 7 })).toBe("The token's claim scope must be a text or a list of texts.");
  expect(await messageOf({ sub: '' })).toBe("The token's claim sub must not be empty.");
  const forged = await ask(await issuer.forge({ ...CLAIMS, accounts: 'acme' }));
  expect(errorOf(forged).message).toContain('unknown, revoked or');
});

it('a token is 401 if the service knows no issuer', async () => {
  const keysOnly = await startApi({ warehouse: api.dependencies.warehouse });
  try {
    expect((await keysOnly.request('/v0/accounts', bearer(await token()))).status).toBe(401);
  } finally {
    await keysOnly.stop();
  }
});

it.each([
  ['nothing listens there', () => 'http://127.0.0.1:1/jwks.json'],
  ['something else is there', () => `${api.url}/healthz`],
  ['it is not found', () => `${api.url}/nope`],
])(
  'a token is 503 when the published keys cannot be read because %s, and an API key still works',
  async (_why, url) => {
    const cut = await startApi({ warehouse: api.dependencies.warehouse, tokens: verifier(url()) });
    try {
      const answer = await cut.request(metricsPath('acme', DAY), bearer(await token()));
      expect([answer.status, errorOf(answer).error]).toEqual([503, 'auth_unavailable']);
      expect(answer.headers.get('retry-after')).toBe('5');
      expect((await cut.request(metricsPath('acme', DAY), bearer(await cut.key('acme')))).status).toBe(200);
    } finally {
      await cut.stop();
    }
  },
);

it('a cursor belongs to account and role, not to a token or its subject', async () => {
  const query = { ...DAY, groupBy: 'workspace', limit: '1' };
  const first = await ask(await token(), query);
  const cursor = /"nextCursor":"([^"]+)"/.exec(first.text)?.[1] ?? '';
  expect((await ask(await token({ exp: seconds + 90 }), { ...query, cursor })).status).toBe(200);
  expect((await ask(await token({ sub: 'user-2' }), { ...query, cursor })).status).toBe(200);
  const member = await token({ sub: 'user-3', accounts: { acme: 'member' } });
  expect(errorOf(await ask(member, { ...query, cursor })).error).toBe('invalid_cursor');
});

it('the list of accounts has every account that the token names', async () => {
  await api.key('acme');
  const answer = await api.request('/v0/accounts', bearer(await token()));
  expect(answer.body).toEqual([
    { id: 'acme', name: 'acme', role: 'admin', createdAt: expect.any(String) },
    // No key of it was ever created.
    { id: 'globex', name: 'globex', role: 'member' },
  ]);
  expect((await api.request('/v0/accounts', bearer(await token()))).body).toEqual(answer.body);
});
