/** Every kind of caller that a service may meet, and the headers that each sends. For the authorisation matrices. */
import type { ApiKeyStore, KeyRole } from '@meterline/service/access';
import { AUDIENCE, ISSUER, type TokenIssuer, unsigned } from './token-issuer.js';

export interface CallerSource {
  readonly keys: ApiKeyStore;
  readonly issuer: TokenIssuer;
  /** The service's clock. */
  readonly now: Date;
  /** The account that is asked for; with a letter. */
  readonly account?: string;
}

type Headers = Readonly<Record<string, string>>;

const bearer = (token: string): Headers => ({ authorization: `Bearer ${token}` });
const svcBearer = (token: string): Headers => ({ 'x-svc-authorization': `Bearer ${token}` });
/** By the name of the kind. */
export function callersOf({ keys, issuer, now, account = 'acme' }: CallerSource) {
  const create = async (of: string, role: KeyRole = 'admin', clientId = `${role} of ${of}`) =>
    (await keys.create({ account: of, role, clientId }, now)).key;
  const admin = () => create(account);

  const seconds = Math.floor(now.getTime() / 1_000);
  const CLAIMS = {
    iss: ISSUER,
    aud: AUDIENCE,
    sub: 'user-1',
    exp: seconds + 3_600,
    scope: 'admin apiKey:list apiKey:write',
  };
  const membership = { [account]: 'admin' };
  const token = async (claims: Readonly<Record<string, unknown>>) =>
    bearer(await issuer.sign({ ...CLAIMS, ...claims }));
  const admins = (claims: Readonly<Record<string, unknown>>) => () => token({ accounts: membership, ...claims });

  const revoked = async () => {
    const key = await create(account, 'admin', 'gone');
    await keys.revoke(key.split('_')[1] ?? '', now);
    return key;
  };

  const expired = async () => {
    const before = new Date(now.getTime() - 1);
    return (await keys.create({ account: account, role: 'admin', clientId: 'late', expiresAt: now }, before)).key;
  };

  const changed = async () => {
    const key = await admin();
    return key.slice(0, -1) + (key.endsWith('0') ? '1' : '0');
  };

  const withOtherClaims = async () => {
    const [header, , signature] = (await issuer.sign({ ...CLAIMS, accounts: {} })).split('.');
    const claims = Buffer.from(JSON.stringify({ ...CLAIMS, accounts: membership })).toString('base64url');
    return `${header}.${claims}.${signature}`;
  };

  return {
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
    'a key with one wrong digit': async () => bearer(await changed()),
    'a revoked key': async () => bearer(await revoked()),
    'an expired key': async () => bearer(await expired()),
    'an admin key': async () => bearer(await admin()),
    'an admin key in X-Svc-Authorization': async () => svcBearer(await admin()),
    'an admin key in both headers': () => admin().then((key) => ({ ...bearer(key), ...svcBearer(key) })),
    'a member key': async () => bearer(await create(account, 'member')),
    'a member key in X-Svc-Authorization': async () => svcBearer(await create(account, 'member')),
    'an emitter key': async () => bearer(await create(account, 'emitter')),
    'an operator key': async () => bearer(await create('platform', 'operator')),
    'an emitter key of another account': async () => bearer(await create('globex', 'emitter')),
    'an admin key of another account': async () => bearer(await create('globex')),
    'a member key of another account': async () => bearer(await create('globex', 'member')),
    'an admin key of ACME': async () => bearer(await create(account.toUpperCase())),
    'two admin keys': async () => ({ ...bearer(await admin()), ...svcBearer(await admin()) }),
    'an admin key and a member key': async () => ({
      ...bearer(await admin()),
      ...svcBearer(await create(account, 'member')),
    }),
    'an admin key and a token': async () => ({
      ...svcBearer(await admin()),
      ...(await token({ accounts: membership })),
    }),
    'an admin key and garbage': async () => ({ ...bearer(await admin()), ...svcBearer('garbage') }),
    'an admin token': admins({}),
    'a member token': admins({ accounts: { [account]: 'member' } }),
    'an admin token of two accounts': admins({ accounts: { globex: 'member', [account]: 'admin' } }),
    'an admin token of another account': admins({ accounts: { globex: 'admin' } }),
    'an admin token of ACME': admins({ accounts: { [account.toUpperCase()]: 'admin' } }),
    'a token of no account': admins({ accounts: {} }),
    'a token without accounts': admins({ accounts: undefined }),
    'a token with a role that does not exist': admins({ accounts: { [account]: 'owner' } }),
    'an admin token without scopes': admins({ scope: undefined }),
    'an admin token with another scope': admins({ scope: 'administrator jobs:list' }),
    'an admin token with the scope admin': admins({ scope: 'admin' }),
    'a member token with the scope admin': admins({ scope: 'admin', accounts: { [account]: 'member' } }),
    'a stranger’s token with the scope admin': admins({ scope: 'admin', accounts: { globex: 'admin' } }),
    'an admin token with the scope apiKey:write': admins({ scope: 'apiKey:write' }),
    'a member token with the scope apiKey:write': admins({ scope: 'apiKey:write', accounts: { [account]: 'member' } }),
    'an admin token with the scope apiKey:list': admins({ scope: 'apiKey:list' }),
    'a member token with the scope apiKey:list': admins({ scope: 'apiKey:list', accounts: { [account]: 'member' } }),
    'an expired token': admins({ exp: seconds - 1 }),
    'a token that never expires': admins({ exp: undefined }),
    'a token that is not valid yet': admins({ nbf: seconds + 3_600 }),
    'a token of another issuer': admins({ iss: 'https://evil.example.com/' }),
    'a token for another audience': admins({ aud: 'somebody-else' }),
    'a token without a subject': admins({ sub: undefined }),
    'a token with broken claims': admins({ accounts: account }),
    'a token with other claims than were signed': async () => bearer(await withOtherClaims()),
    'a forged token': async () => bearer(await issuer.forge({ ...CLAIMS, accounts: membership })),
    'a token signed with a shared secret': async () =>
      bearer(await issuer.signWithSharedSecret({ ...CLAIMS, accounts: membership })),
    'an unsigned token': () => bearer(unsigned({ ...CLAIMS, accounts: membership })),
  } satisfies Record<string, () => Headers | Promise<Headers>>;
}

export type CallerKind = keyof ReturnType<typeof callersOf>;

const NO_CALLER: readonly CallerKind[] = [
  'nobody',
  'an empty Authorization',
  'a scheme without a token',
  'garbage',
  'two words',
  'an admin key without a scheme',
  'Basic',
  'another scheme with an admin key',
  'a key in the query’s place: a cookie',
  'a key that never was',
  'a key with one wrong digit',
  'a revoked key',
  'an expired key',
  'an expired token',
  'a token that never expires',
  'a token that is not valid yet',
  'a token of another issuer',
  'a token for another audience',
  'a token without a subject',
  'a token with broken claims',
  'a token with other claims than were signed',
  'a forged token',
  'a token signed with a shared secret',
  'an unsigned token',
];
const TWO_CALLERS: readonly CallerKind[] = [
  'two admin keys',
  'an admin key and a member key',
  'an admin key and a token',
  'an admin key and garbage',
];

/** Those that every operation which needs credentials turns away, in every service, with the status and the code of the answer. */
export const TURNED_AWAY: readonly (readonly [kind: CallerKind, outcome: string])[] = [
  ...NO_CALLER.map((kind) => [kind, '401 unauthorized'] as const),
  ...TWO_CALLERS.map((kind) => [kind, '400 conflicting_credentials'] as const),
];
