/** Who is asking, and what that caller may do. Source: the API specification, section "Authentication", and DESIGN section 7. */
import type { PlatformRole, Role } from '@meterline/service/access';
import type { Principal } from '../admission/principal.js';
import { ApiError, adminsOnly, insufficientScope, notAMember } from '../http/errors.js';

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
  /** The roles for all accounts. */
  readonly platformRoles: ReadonlySet<PlatformRole>;
  /** What a JWT calls accounts; of an account that it does not name so, the name is the registered one. */
  readonly accountNames?: ReadonlyMap<string, string>;
}

/**
 * The account to charge a request to when the request names none: the caller's only account, or one of the caller's own.
 * @param accounts the accounts that the request may be about
 */
export function principalOf(
  { id, roles, emitsFor }: Caller,
  accounts: Iterable<string> = emitsFor === undefined ? roles.keys() : [emitsFor],
): Principal {
  const [account, ...others] = accounts;
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

export function isOperator({ platformRoles }: Caller): boolean {
  return platformRoles.has('operator');
}

export function isProvisioner({ platformRoles }: Caller): boolean {
  return platformRoles.has('provisioner');
}

/** @throws ApiError `forbidden` for a key that may only send events, or only manage accounts and keys */
export function requireReader(caller: Caller): void {
  const { emitsFor, platformRoles, roles } = caller;
  if (roles.size > 0 || isOperator(caller)) return;
  if (isProvisioner(caller)) throw new ApiError(403, 'forbidden', PROVISIONER_READS_NO_USAGE);
  if (emitsFor !== undefined || platformRoles.has('emitter'))
    throw new ApiError(403, 'forbidden', EMITTER_READS_NOTHING);
}

const EMITTER_READS_NOTHING =
  'This API key or token has the role emitter: it may send events to the collector, and read nothing. Use one with the role admin, member or operator.';
const PROVISIONER_READS_NO_USAGE =
  'This API key or token has the role provisioner: it names accounts and manages their API keys, and reads no usage. Use one with the role admin, member or operator.';

/** @throws ApiError `forbidden` for a caller who may not list accounts */
export function requireLister(caller: Caller): void {
  if (!isProvisioner(caller)) requireReader(caller);
}

/** @throws ApiError `forbidden` */
export function requireProvisioner(caller: Caller): void {
  if (!isProvisioner(caller)) throw new ApiError(403, 'forbidden', PROVISIONERS_ONLY);
}

const PROVISIONERS_ONLY =
  'Only a provisioner may name accounts: use a key that meterline keys create --role provisioner made, or a token with that role.';

/** The caller's role in the account. @throws ApiError `forbidden`, the same whether there is such an account or not */
export function requireMembership(caller: Caller, account: string): Role {
  requireReader(caller);
  const role = roleIn(caller, account);
  if (!role) throw notAMember();
  return role;
}

function roleIn(caller: Caller, account: string): Role | undefined {
  return isOperator(caller) ? 'admin' : caller.roles.get(account);
}

/** To be called before anything of an account is changed. @throws ApiError `forbidden` for all but admins of the account */
export function requireWriter(caller: Caller, account: string): void {
  if (mayWrite(caller, account)) return;
  throw isOperator(caller) ? operatorsChangeNothing() : adminsOnly();
}

export function mayWrite({ roles }: Caller, account: string): boolean {
  return roles.get(account) === 'admin';
}

function operatorsChangeNothing(): ApiError {
  const message =
    'This API key or token has the role operator: it reads every account and changes nothing. Use the key of an admin of the account.';
  return new ApiError(403, 'forbidden', message);
}

/** The accounts whose keys the caller may manage, as an admin of them or a provisioner. @throws ApiError `forbidden` where there are none */
export function requireKeyManager(caller: Caller): readonly string[] | 'all' {
  if (isProvisioner(caller)) return 'all';
  requireReader(caller);
  const accounts = administered(caller);
  if (accounts.length > 0) return accounts;
  throw isOperator(caller) ? operatorsChangeNothing() : adminsOnly();
}

function administered({ roles }: Caller): readonly string[] {
  return [...roles].flatMap(([account, role]) => (role === 'admin' ? [account] : []));
}

/** @throws ApiError `forbidden` */
export function requireAdmin(role: Role): void {
  if (role !== 'admin') throw adminsOnly();
}

/**
 * The accounts whose events the caller may send, at least one. An API key needs the role `emitter`; a token the scope `admin` and that role,
 * or the role of an admin of an account. Source: docs/decisions/0016.
 * @throws ApiError `insufficient_scope`; `forbidden` where there are none
 */
export function requireSender(caller: Caller): readonly string[] | 'all' {
  requireScope(caller, 'admin');
  const { emitsFor, keyId, platformRoles } = caller;
  if (platformRoles.has('emitter')) return 'all';
  if (emitsFor !== undefined) return [emitsFor];
  const accounts = keyId === undefined ? administered(caller) : [];
  if (accounts.length === 0) throw senderRequired();
  return accounts;
}

export function senderRequired(): ApiError {
  const message =
    'This API key or token may not send events; use a key of the role emitter, such as meterline keys create --role emitter makes, or the token of an admin of the account.';
  return new ApiError(403, 'forbidden', message);
}
