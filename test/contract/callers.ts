/** The platform's authorisation server, and every kind of caller that a service may meet, for the authorisation matrices. */
import { createTokenVerifier, DEFAULT_ACCOUNT_CLAIMS, startServer, type TokenVerifier } from '@meterline/api';
import type { ApiKeyStore, KeyRole } from '@meterline/service/access';
import { exportJWK, generateKeyPair, SignJWT } from 'jose';
import { pino } from 'pino';

export const ISSUER = 'https://auth.example.com/';
export const AUDIENCE = 'meterline';
const PLATFORM_ROLES_CLAIM = 'https://meterline.example.com/roles';

type Claims = Readonly<Record<string, unknown>>;

export interface TokenIssuer {
  /** Where its public key is. */
  readonly jwksUrl: string;
  /** With them a service takes its tokens. */
  readonly env: Readonly<
    Record<'AUTH_JWKS_URL' | 'AUTH_ISSUER' | 'AUTH_AUDIENCE' | 'AUTH_PLATFORM_ROLES_CLAIM', string>
  >;
  /** At the issuer's time. */
  readonly verifier: TokenVerifier;
  /** A token that user-1 may use everywhere for an hour, but for what the claims say. */
  sign(claims: Claims): Promise<string>;
  /** A token that somebody else has signed under the name of the same key. */
  forge(claims: Claims): Promise<string>;
  /** A token with an HMAC for a signature, whose secret is the public key. */
  signWithSharedSecret(claims: Claims): Promise<string>;
  /** A token without a signature: it says that it needs none. */
  unsigned(claims: Claims): string;
  close(): Promise<void>;
}

export async function startTokenIssuer(now = new Date()): Promise<TokenIssuer> {
  const [own, foreign] = await Promise.all([generateKeyPair('RS256'), generateKeyPair('RS256')]);
  const publicKey = await exportJWK(own.publicKey);
  const published = JSON.stringify({ keys: [{ ...publicKey, kid: 'one', alg: 'RS256', use: 'sig' }] });
  const log = pino({ level: 'silent' });
  const server = await startServer((_request, response) => response.end(published), { port: 0, log });
  const jwksUrl = `http://127.0.0.1:${server.port}/jwks.json`;
  const exp = Math.floor(now.getTime() / 1_000) + 3_600;
  const usual = { iss: ISSUER, aud: AUDIENCE, sub: 'user-1', exp, scope: 'admin apiKey:list apiKey:write' };
  const signed = (claims: Claims, key: CryptoKey | Uint8Array, alg: string) =>
    new SignJWT({ ...usual, ...claims }).setProtectedHeader({ alg, kid: 'one' }).sign(key);
  return {
    jwksUrl,
    env: {
      ...{ AUTH_JWKS_URL: jwksUrl, AUTH_ISSUER: ISSUER, AUTH_AUDIENCE: AUDIENCE },
      AUTH_PLATFORM_ROLES_CLAIM: PLATFORM_ROLES_CLAIM,
    },
    verifier: createTokenVerifier({
      ...{ jwksUrl, issuer: ISSUER, audience: AUDIENCE, clock: () => now, log },
      accountClaims: { ...DEFAULT_ACCOUNT_CLAIMS, platformRoles: [PLATFORM_ROLES_CLAIM] },
    }),
    sign: (claims) => signed(claims, own.privateKey, 'RS256'),
    forge: (claims) => signed(claims, foreign.privateKey, 'RS256'),
    signWithSharedSecret: (claims) => signed(claims, new TextEncoder().encode(JSON.stringify(publicKey)), 'HS256'),
    unsigned: (claims) => `${encoded({ alg: 'none' })}.${encoded({ ...usual, ...claims })}.`,
    close: () => server.close(0),
  };
}

function keysOf<Kind extends string>(callers: Readonly<Record<Kind, unknown>>): Kind[] {
  return Object.keys(callers) as Kind[];
}

function encoded(part: Claims): string {
  return Buffer.from(JSON.stringify(part)).toString('base64url');
}

export type CallerKind = keyof ReturnType<typeof callersOf>['all'];

export interface CallerSource {
  readonly keys: ApiKeyStore;
  readonly issuer: TokenIssuer;
  /** The service's clock. */
  readonly now: Date;
  /** The account that is asked for; with a letter. */
  readonly account?: string;
}

type Headers = Readonly<Record<string, string>>;
type Callers = Readonly<Record<string, () => Headers | Promise<Headers>>>;

const bearer = (token: string): Headers => ({ authorization: `Bearer ${token}` });
const svcBearer = (token: string): Headers => ({ 'x-svc-authorization': `Bearer ${token}` });

/** By the name of its kind, the headers that each sends. @param source read when a caller is made */
export function callersOf(source: () => CallerSource) {
  const own = () => source().account ?? 'acme';
  const create = async (
    account: string | undefined,
    role: KeyRole = 'admin',
    clientId = `${role} of ${account}`,
    expiresAt?: Date,
  ) => {
    const { keys, now } = source();
    const key = { account, role, clientId, ...(expiresAt && { expiresAt }) };
    // A key with an end is made a moment before that.
    return keys.create(key, expiresAt ? new Date(expiresAt.getTime() - 1) : now);
  };
  const key = async (role?: KeyRole, account = own()) => (await create(account, role)).key;
  const admin = () => key();
  const member = () => key('member');
  const ofAdmin = (claims: Claims) => ({ accounts: { [own()]: 'admin' }, ...claims });
  const token = (claims: (account: string) => Claims) => async () =>
    bearer(await source().issuer.sign(ofAdmin(claims(own()))));
  const memberToken = (claims: Claims) => token((account) => ({ accounts: { [account]: 'member' }, ...claims }));
  const platformToken = (roles: unknown) => token(() => ({ accounts: {}, [PLATFORM_ROLES_CLAIM]: roles }));
  const seconds = () => Math.floor(source().now.getTime() / 1_000);

  const unknown = {
    nobody: () => ({}),
    'an empty Authorization': () => ({ authorization: '' }),
    'a scheme without a token': () => ({ authorization: 'Bearer' }),
    garbage: () => bearer('garbage'),
    'two words': async () => ({ authorization: `Bearer ${await admin()} x` }),
    'an admin key without a scheme': async () => ({ authorization: await admin() }),
    Basic: async () => ({ authorization: `Basic ${Buffer.from(`${await admin()}:`).toString('base64')}` }),
    'another scheme with an admin key': async () => ({ authorization: `Token ${await admin()}` }),
    'a key in the query’s place: a cookie': async () => ({ cookie: `authorization=Bearer ${await admin()}` }),
    'a key that never was': () => bearer(`mlk_${'0'.repeat(24)}_${'0'.repeat(64)}`),
    'a key with one wrong digit': async () =>
      bearer((await admin()).replace(/.$/, (digit) => (digit === '0' ? '1' : '0'))),
    'a revoked key': async () => {
      const { key, keyId } = await create(own(), 'admin', 'gone');
      await source().keys.revoke(keyId, source().now);
      return bearer(key);
    },
    'an expired key': async () => bearer((await create(own(), 'admin', 'late', source().now)).key),
    'an expired token': token(() => ({ exp: seconds() - 1 })),
    'a token that never expires': token(() => ({ exp: undefined })),
    'a token that is not valid yet': token(() => ({ nbf: seconds() + 3_600 })),
    'a token of another issuer': token(() => ({ iss: 'https://evil.example.com/' })),
    'a token for another audience': token(() => ({ aud: 'somebody-else' })),
    'a token without a subject': token(() => ({ sub: undefined })),
    'a token with broken claims': token((account) => ({ accounts: account })),
    'a token with other claims than were signed': async () => {
      const { issuer } = source();
      const [header, , signature] = (await issuer.sign({ accounts: {} })).split('.');
      const [, claims] = issuer.unsigned(ofAdmin({})).split('.');
      return bearer(`${header}.${claims}.${signature}`);
    },
    'a forged token': async () => bearer(await source().issuer.forge(ofAdmin({}))),
    'a token signed with a shared secret': async () => bearer(await source().issuer.signWithSharedSecret(ofAdmin({}))),
    'an unsigned token': () => bearer(source().issuer.unsigned(ofAdmin({}))),
  } satisfies Callers;
  const contradicting = {
    'two admin keys': async () => ({ ...bearer(await admin()), ...svcBearer(await admin()) }),
    'an admin key and a member key': async () => ({ ...bearer(await admin()), ...svcBearer(await member()) }),
    'an admin key and a token': async () => ({ ...svcBearer(await admin()), ...(await token(() => ({}))()) }),
    'an admin key and garbage': async () => ({ ...bearer(await admin()), ...svcBearer('garbage') }),
  } satisfies Callers;
  const known = {
    'an admin key': async () => bearer(await admin()),
    'an admin key in X-Svc-Authorization': async () => svcBearer(await admin()),
    'an admin key in both headers': () => admin().then((one) => ({ ...bearer(one), ...svcBearer(one) })),
    'a member key': async () => bearer(await member()),
    'a member key in X-Svc-Authorization': async () => svcBearer(await member()),
    'an emitter key': async () => bearer(await key('emitter')),
    'an operator key': async () => bearer((await create(undefined, 'operator')).key),
    'a provisioner key': async () => bearer((await create(undefined, 'provisioner')).key),
    'an emitter key of all accounts': async () => bearer((await create(undefined, 'emitter')).key),
    'an emitter key of another account': async () => bearer(await key('emitter', 'globex')),
    'an admin key of another account': async () => bearer(await key('admin', 'globex')),
    'a member key of another account': async () => bearer(await key('member', 'globex')),
    'an admin key of ACME': async () => bearer(await key('admin', own().toUpperCase())),
    'an admin token': token(() => ({})),
    'a member token': memberToken({}),
    'an admin token of two accounts': token((account) => ({ accounts: { globex: 'member', [account]: 'admin' } })),
    'an admin token of another account': token(() => ({ accounts: { globex: 'admin' } })),
    'an admin token of ACME': token((account) => ({ accounts: { [account.toUpperCase()]: 'admin' } })),
    'an operator token': platformToken('operator'),
    'a provisioner token': platformToken(['provisioner', 'somebody']),
    'an emitter token of all accounts': platformToken(['emitter']),
    'an operator token that is an admin of the account': token(() => ({ [PLATFORM_ROLES_CLAIM]: 'operator' })),
    'a token with roles of the platform in another claim': token(() => ({
      accounts: {},
      roles: ['operator'],
      role: 'provisioner',
    })),
    'a provisioner token without scopes': token(() => ({
      accounts: {},
      [PLATFORM_ROLES_CLAIM]: 'provisioner',
      scope: '',
    })),
    'a token of no account': token(() => ({ accounts: {} })),
    'a token without accounts': token(() => ({ accounts: undefined })),
    'a token with a role that does not exist': token((account) => ({ accounts: { [account]: 'owner' } })),
    'an admin token without scopes': token(() => ({ scope: undefined })),
    'an admin token with another scope': token(() => ({ scope: 'administrator jobs:list' })),
    'an admin token with the scope admin': token(() => ({ scope: 'admin' })),
    'a member token with the scope admin': memberToken({ scope: 'admin' }),
    'a stranger’s token with the scope admin': token(() => ({ scope: 'admin', accounts: { globex: 'admin' } })),
    'an admin token with the scope apiKey:write': token(() => ({ scope: 'apiKey:write' })),
    'a member token with the scope apiKey:write': memberToken({ scope: 'apiKey:write' }),
    'an admin token with the scope apiKey:list': token(() => ({ scope: 'apiKey:list' })),
    'a member token with the scope apiKey:list': memberToken({ scope: 'apiKey:list' }),
  } satisfies Callers;
  /** The callers that every operation which needs credentials turns away, with the status and the code of the response. */
  const turnedAway = [
    ...keysOf(unknown).map((kind) => [kind, '401 unauthorized'] as const),
    ...keysOf(contradicting).map((kind) => [kind, '400 conflicting_credentials'] as const),
  ];
  return { all: { ...unknown, ...contradicting, ...known }, turnedAway };
}
