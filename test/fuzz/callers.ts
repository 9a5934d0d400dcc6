/** The kinds of callers that the fuzzed requests come from. The whole matrix is test/contract/authorisation-matrix. */

export interface Caller {
  readonly kind: string;
  readonly headers: Readonly<Record<string, string | string[]>>;
  /** What authentication says to it: its scopes and role, or the refusal. */
  readonly identity: Identity | '401 unauthorized' | '400 conflicting_credentials';
}

export interface Identity {
  /** Undefined: an API key, which needs none. */
  readonly scopes?: readonly string[];
  readonly roles: Readonly<Record<string, 'admin' | 'member'>>;
}

/** The credentials of the run, made at its beginning. */
export interface Credentials {
  readonly admin: string;
  readonly member: string;
  readonly stranger: string;
  readonly revoked: string;
}

export const ACCOUNT = 'acme';

export function callersOf({ admin, member, stranger, revoked }: Credentials): readonly [Caller, ...Caller[]] {
  const bearer = (token: string) => ({ authorization: `Bearer ${token}` });
  const admins: Identity = { roles: { [ACCOUNT]: 'admin' } };
  const refused = '401 unauthorized';
  return [
    { kind: 'admin', headers: bearer(admin), identity: admins },
    { kind: 'admin, other header', headers: { 'x-svc-authorization': `bearer ${admin}` }, identity: admins },
    {
      kind: 'admin, both headers',
      headers: { ...bearer(admin), 'X-SVC-Authorization': `BEARER   ${admin}` },
      identity: admins,
    },
    { kind: 'member', headers: bearer(member), identity: { roles: { [ACCOUNT]: 'member' } } },
    { kind: 'stranger', headers: bearer(stranger), identity: { roles: { globex: 'admin' } } },
    { kind: 'revoked', headers: bearer(revoked), identity: refused },
    { kind: 'nobody', headers: {}, identity: refused },
    { kind: 'garbage', headers: bearer('garbage'), identity: refused },
    { kind: 'cut off', headers: bearer(admin.slice(0, -1)), identity: refused },
    { kind: 'too long', headers: bearer(`${admin}${admin}`), identity: refused },
    { kind: 'not a token', headers: { authorization: `Bearer ${'='.repeat(40)}` }, identity: refused },
    { kind: 'a JWT of nobody', headers: bearer('eyJhbGciOiJub25lIn0.e30.'), identity: refused },
    { kind: 'Basic', headers: { authorization: 'Basic YTpi' }, identity: refused },
    {
      kind: 'two keys',
      headers: { authorization: [`Bearer ${admin}`, `Bearer ${member}`] },
      identity: '400 conflicting_credentials',
    },
    {
      kind: 'a key and another bearer',
      headers: { ...bearer(admin), 'x-svc-authorization': 'Bearer x' },
      identity: '400 conflicting_credentials',
    },
    {
      kind: 'a key behind a proxy that has Authorization for itself',
      headers: { authorization: 'Basic YTpi', 'x-svc-authorization': `Bearer ${admin}` },
      identity: admins,
    },
    { kind: 'a key and garbage', headers: { ...bearer(admin), 'x-svc-authorization': 'x' }, identity: admins },
  ];
}
