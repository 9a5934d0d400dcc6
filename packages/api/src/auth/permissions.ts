/** Who is asking, and what that caller may do. Source: the API specification, section "Authentication", and DESIGN section 7. */
import type { Role } from '@meterline/service/access';
import type { Principal } from '../admission/principal.js';
import { ApiError, adminsOnly, insufficientScope, notAMember, notItsEmitter } from '../http/errors.js';

/** Who is asking, and what they may see. */
export interface Caller {
  /** The service account of an API key, or the subject of a JWT: it stays the same when the token is renewed. */
  readonly id: string;
  /** The id of the API key that was sent; undefined for a JWT. */
  readonly keyId?: string;
  /** The scopes of a JWT; undefined for an API key, which needs none. */
  readonly scopes: ReadonlySet<string> | undefined;
  /** The accounts that the caller may read. */
  readonly roles: ReadonlyMap<string, Role>;
  /** The account of an emitter's key, which may send events of it and read nothing. */
  readonly emitsFor?: string;
  /** Reads every account, as an admin of it, and changes nothing; `roles` is empty. */
  readonly isOperator?: boolean;
  /** What a JWT calls accounts; of an account that it does not name so, the name is the registered one. */
  readonly accountNames?: ReadonlyMap<string, string>;
}

/** The account to charge a request to when the request names none: the caller's only account, or one of the caller's own. */
export function principalOf({ id, roles, emitsFor }: Caller): Principal {
  const [account = emitsFor, ...others] = roles.keys();
  // No account is called so: a name has no control characters.
  return { account: account === undefined || others.length > 0 ? `\0${id}` : account, caller: id };
}

/** The scopes that operations of this API need. Source: the API specification, section "Authentication". */
export const SCOPES = ['admin', 'apiKey:list', 'apiKey:write'] as const;
export type Scope = (typeof SCOPES)[number];

/** Scopes limit JWTs; an API key may do what its role may. @throws ApiError `insufficient_scope` */
export function requireScope({ scopes }: Caller, scope: Scope): void {
  if (scopes && !scopes.has(scope)) throw insufficientScope(scope);
}

/** @throws ApiError `forbidden` for a key that may only send events */
export function requireReader({ emitsFor }: Caller): void {
  if (emitsFor === undefined) return;
  const message =
    'This API key has the role emitter: it may send events to the collector, and read nothing. Use a key with the role admin or member.';
  throw new ApiError(403, 'forbidden', message);
}

/** The caller's role in the account. @throws ApiError `forbidden`, the same whether there is such an account or not */
export function requireMembership(caller: Caller, account: string): Role {
  requireReader(caller);
  const role = roleIn(caller, account);
  if (!role) throw notAMember();
  return role;
}

function roleIn({ roles, isOperator }: Caller, account: string): Role | undefined {
  return isOperator ? 'admin' : roles.get(account);
}

/** To be called before anything is changed. @throws ApiError `forbidden` for an operator's key */
export function requireWriter({ isOperator }: Caller): void {
  if (!isOperator) return;
  const message =
    'This API key has the role operator: it reads every account and changes nothing. Use the key of an admin of the account.';
  throw new ApiError(403, 'forbidden', message);
}

/** The accounts whose keys the caller may manage, as an admin of them. @throws ApiError `forbidden` where there are none */
export function requireAdminAccounts(caller: Caller): readonly string[] {
  requireReader(caller);
  requireWriter(caller);
  const accounts = [...caller.roles].flatMap(([account, role]) => (role === 'admin' ? [account] : []));
  if (accounts.length === 0) throw adminsOnly();
  return accounts;
}

/** @throws ApiError `forbidden` */
export function requireAdmin(role: Role): void {
  if (role !== 'admin') throw adminsOnly();
}

/**
 * May the caller send events of the account? An API key needs the role `emitter`; a token the scope `admin` and the role of an
 * admin. Source: docs/decisions/0016.
 * @throws ApiError `insufficient_scope`; `forbidden`, the same for every account that is not the caller's
 */
export function requireEmitter(caller: Caller, account: string): void {
  requireScope(caller, 'admin');
  const { emitsFor, keyId } = caller;
  if (emitsFor === account) return;
  if (emitsFor !== undefined) throw notItsEmitter();
  const role = roleIn(caller, account);
  if (role === undefined) throw notAMember();
  if (keyId !== undefined) throw new ApiError(403, 'forbidden', KEY_READS_ONLY);
  if (role !== 'admin') throw new ApiError(403, 'forbidden', MEMBER_READS_ONLY);
}

const KEY_READS_ONLY =
  'This API key may read and not send events; send them with a key of the role emitter, such as meterline keys create --role emitter makes.';
const MEMBER_READS_ONLY =
  'A member of the account may read and not send events; send them with the token of an admin, or an API key of the role emitter.';
