/** When the published keys are fetched, and what happens while they cannot be. Which tokens are valid: test/contract/authorisation. */
import { createServer, type Server } from 'node:http';
import { afterEach, beforeAll, beforeEach, expect, it, jest } from '@jest/globals';
import { exportJWK, type GenerateKeyPairResult, generateKeyPair, SignJWT } from 'jose';
import { pino } from 'pino';
import { listening } from '../../../../test/harness/listening.js';
import { LastUses } from './authenticate.js';
import { type Caller, principalOf } from './permissions.js';
import { createTokenVerifier, type TokenVerifier } from './tokens.js';

const NOW = new Date('2025-11-15T12:00:00Z');
const KEPT_MS = 24 * 3_600_000;
/** Longer than between two fetches. */
const MOMENT_MS = 15_000;
const FRESH_MS = 600_000;
const CLAIMS = { iss: 'https://auth.example.com/', aud: 'meterline', sub: 'user-1', exp: NOW.getTime() / 1000 + 60 };

let keys: Record<'one' | 'two', GenerateKeyPairResult>;
beforeAll(async () => {
  keys = { one: await generateKeyPair('ES256'), two: await generateKeyPair('ES256') };
});

/** The JWKS server: which keys it publishes, whether it is away, and how often it was asked. */
let jwks: { server: Server; url: string; published: ('one' | 'two')[]; isAway: boolean; requests: number };
let events: unknown[];
let verifier: TokenVerifier;

function setElapsed(ms: number): void {
  jest.spyOn(Date, 'now').mockReturnValue(NOW.getTime() + ms);
}

beforeEach(async () => {
  const server = createServer(async (_request, response) => {
    jwks.requests += 1;
    if (jwks.isAway) return response.destroy();
    const published = jwks.published.map(async (kid) => ({ ...(await exportJWK(keys[kid].publicKey)), kid }));
    return response.end(JSON.stringify({ keys: await Promise.all(published) }));
  });
  jwks = { server, url: `${await listening(server)}/`, published: ['one'], isAway: false, requests: 0 };
  setElapsed(0);
  events = [];
  verifier = createTokenVerifier({
    jwksUrl: jwks.url,
    issuer: CLAIMS.iss,
    audience: CLAIMS.aud,
    clock: () => NOW,
    log: pino({}, { write: (line: string) => events.push(JSON.parse(line).event) }),
  });
});
afterEach(() => {
  jest.restoreAllMocks();
  jwks.server.closeAllConnections();
  jwks.server.close();
});

const token = (kid: string, key = keys.one, claims = {}) =>
  new SignJWT({ ...CLAIMS, ...claims }).setProtectedHeader({ alg: 'ES256', kid }).sign(key.privateKey);
const accepts = async (text: string) => (await verifier.verify(text)) !== undefined;
const UNAVAILABLE = expect.objectContaining({ status: 503, code: 'auth_unavailable' });

it.each([
  [true, 'begins in 5 s, by the clock of an issuer that is ahead', { nbf: NOW.getTime() / 1000 + 5 }],
  [false, 'begins in 10 s', { nbf: NOW.getTime() / 1000 + 10 }],
  [false, 'ends now', { exp: NOW.getTime() / 1000 }],
])('it is %s that a token is accepted that %s', async (isAccepted, _what, claims) => {
  expect(await accepts(await token('one', keys.one, claims))).toBe(isAccepted);
});

it.each([
  [{ scope: 'jobs:list admin' }],
  [{ scopes: ['jobs:list', 'admin'] }],
  [{ scope: '', scp: ['jobs:list', 'admin'] }],
  [{ scp: 'jobs:list admin' }],
])('a token may carry its scopes as %j', async (claims) => {
  const caller = await verifier.verify(await token('one', keys.one, claims));
  expect([...(caller?.scopes ?? [])].filter((scope) => scope !== '')).toEqual(['jobs:list', 'admin']);
});

it.each([
  [{ scope: 7 }, 'scope must be a string or a list of strings.'],
  [{ sub: '' }, 'sub must not be empty.'],
  [{ accounts: 'acme' }, 'accounts must be an object of account ids and roles'],
])('a token with the claims %j is rejected with a message that names the claim', async (claims, problem) => {
  const message = expect.stringContaining(`The token's claim ${problem}`);
  await expect(verifier.verify(await token('one', keys.one, claims))).rejects.toThrow(
    expect.objectContaining({ status: 401, code: 'unauthorized', message }),
  );
});

it('while the published keys cannot be fetched, a token of a known key is accepted for as long as keys are kept, and not longer', async () => {
  expect(await accepts(await token('one'))).toBe(true);
  jwks.isAway = true;
  for (let elapsed = 0; elapsed <= KEPT_MS; elapsed += KEPT_MS / 10) {
    setElapsed(elapsed);
    expect(await accepts(await token('one'))).toBe(true);
  }
  setElapsed(KEPT_MS + FRESH_MS + 1);
  await expect(verifier.verify(await token('one'))).rejects.toThrow(UNAVAILABLE);
  expect(new Set(events)).toEqual(new Set(['outage']));
  jwks.isAway = false;
  expect(await accepts(await token('one'))).toBe(true);
  expect(events.at(-1)).toBe('outage_over');
});

it('while the published keys cannot be fetched, a bad token is rejected, not unavailable: another signature, an unknown key, no token at all', async () => {
  expect(await accepts(await token('one'))).toBe(true);
  jwks.isAway = true;
  setElapsed(KEPT_MS / 2);
  expect(await accepts(await token('one', keys.two))).toBe(false);
  expect(await accepts(await token('unknown'))).toBe(false);
  expect(await accepts('garbage')).toBe(false);
});

it('while the published keys could never be fetched, no token can be checked, and a text that is none is rejected still', async () => {
  jwks.isAway = true;
  await expect(verifier.verify(await token('one'))).rejects.toThrow(UNAVAILABLE);
  expect(await accepts('garbage')).toBe(false);
});

const crowd = async (kid: string) => {
  const tokens = await Promise.all(Array.from({ length: 50 }, (_, index) => token(`${kid}-${index}`)));
  return Promise.all(tokens.map((text) => verifier.verify(text).catch(() => 'unavailable')));
};

it.each([false, true])(
  'the published keys are fetched once in an interval, for all callers together, for tokens with unknown keys (they are away: %s)',
  async (isAway) => {
    expect(await accepts(await token('one'))).toBe(true);
    setElapsed(MOMENT_MS);
    jwks.isAway = isAway;
    jwks.requests = 0;
    expect(new Set([...(await crowd('a')), ...(await crowd('b'))])).toEqual(new Set([undefined]));
    expect(jwks.requests).toBe(1);
    setElapsed(2 * MOMENT_MS);
    await crowd('c');
    expect(jwks.requests).toBe(2);
  },
);

it('a newly published key is accepted after a short time', async () => {
  expect(await accepts(await token('one'))).toBe(true);
  jwks.published = ['one', 'two'];
  expect(await accepts(await token('two', keys.two))).toBe(false);
  setElapsed(MOMENT_MS);
  expect(await accepts(await token('two', keys.two))).toBe(true);
});

it('a withdrawn key is rejected after ten minutes', async () => {
  expect(await accepts(await token('one'))).toBe(true);
  jwks.published = ['two'];
  setElapsed(FRESH_MS + 1);
  expect(await accepts(await token('one'))).toBe(false);
});

const at = (time: string) => new Date(`2025-11-15T${time}Z`);

/** A store whose writes can fail, with the recorded calls. */
function store() {
  const written: string[] = [];
  const state = { isFull: false };
  const noteUse = async (keyId: string, hour: Date) => {
    written.push(`${keyId} ${hour.toISOString().slice(11, 16)}`);
    if (state.isFull) throw new Error('OOM');
  };
  const failures: unknown[] = [];
  return { written, state, failures, uses: new LastUses({ noteUse }, (error) => failures.push(error)) };
}

it('the last use of each key is recorded once an hour, with the start of the hour', () => {
  const { written, uses } = store();
  for (const time of ['12:00:00', '12:30:00', '12:59:59.999']) uses.note('a', at(time));
  uses.note('b', at('12:40:00'));
  for (const time of ['13:00:00', '13:00:01', '16:20:00']) uses.note('a', at(time));
  expect(written).toEqual(['a 12:00', 'b 12:00', 'a 13:00', 'a 16:00']);
});

it('a failed record of a last use is retried after a minute, and fails no request', async () => {
  const { written, state, failures, uses } = store();
  state.isFull = true;
  for (const time of ['12:00:00', '12:00:59.999', '12:01:00']) {
    uses.note('a', at(time));
    // The refusal arrives.
    await Promise.resolve();
    await Promise.resolve();
  }
  expect(written).toEqual(['a 12:00', 'a 12:00']);
  expect(failures).toEqual([new Error('OOM'), new Error('OOM')]);
  state.isFull = false;
  for (const time of ['12:02:00', '12:03:00']) uses.note('a', at(time));
  expect(written).toEqual(['a 12:00', 'a 12:00', 'a 12:00']);
});

it.each<[string, Partial<Caller>]>([
  ['without accounts', {}],
  [
    'with several accounts',
    {
      roles: new Map([
        ['acme', 'member'],
        ['zeta', 'member'],
      ]),
    },
  ],
  ['that is an operator', { platformRoles: new Set(['operator']) }],
])('a caller %s is limited apart from every other caller and account', (_kind, caller) => {
  const [one, other] = ['one', 'other'].map((id) =>
    principalOf({ id, scopes: undefined, roles: new Map(), platformRoles: new Set(), ...caller }),
  );
  expect(one?.account).not.toBe(other?.account);
  expect(['', 'acme', 'zeta', 'one']).not.toContain(one?.account);
});
