/** Checks what a caller may do. Source: docs/api-contract.md, "Roles" and "Credentials". */
import type { PlatformRole, Role } from '@meterline/service/access';
import type { Principal } from '../admission/principal.js';
import { ApiError, adminsOnly, insufficientScope, notAMember } from '../http/errors.js';

export interface Caller {
  /** The service account of an API key, or the subject of a JWT. It stays the same when the token is renewed. */
  readonly id: string;
  /** The ID of the API key. Undefined if the caller has a JWT. */
  readonly keyId?: string;
  /** The scopes of a JWT. Undefined if the caller has an API key, which needs no scopes. */
  readonly scopes: ReadonlySet<string> | undefined;
  readonly roles: ReadonlyMap<string, Role>;
  /** The account of an API key with the role `emitter`. Such a key may send events of the account, but not read anything. */
  readonly emitsFor?: string;
  readonly platformRoles: ReadonlySet<PlatformRole>;
  /** Account names from a JWT. Accounts that are not in this map have the names that are stored in Redis. */
  readonly accountNames?: ReadonlyMap<string, string>;
}

/**
 * Returns whose limits apply to a request that names no account. If the caller has exactly one account, the limits of that account apply.
 * Otherwise, the caller is treated as an account of its own.
 */
export function principalOf(
  { id, roles, emitsFor }: Caller,
  accounts: Iterable<string> = emitsFor === undefined ? roles.keys() : [emitsFor],
): Principal {
  const [account, ...others] = accounts;
  // Account IDs have no control characters, so `\0` keeps this ID distinct from the ID of every real account.
  return { account: account === undefined || others.length > 0 ? `\0${id}` : account, caller: id };
}

export const SCOPES = ['admin', 'apiKey:list', 'apiKey:write'] as const;
export type Scope = (typeof SCOPES)[number];

/** Requires that a JWT has a scope. API keys have no scopes, only a role. @throws ApiError `insufficient_scope` */
export function requireScope({ scopes }: Caller, scope: Scope): void {
  if (scopes && !scopes.has(scope)) throw insufficientScope(scope);
}

export function isOperator({ platformRoles }: Caller): boolean {
  return platformRoles.has('operator');
}

export function isProvisioner({ platformRoles }: Caller): boolean {
  return platformRoles.has('provisioner');
}

/** Rejects callers that may only send events, or only manage accounts and keys. @throws ApiError `forbidden` */
export function requireReader(caller: Caller): void {
  const { emitsFor, platformRoles, roles } = caller;
  if (roles.size > 0 || isOperator(caller)) return;
  if (isProvisioner(caller)) throw new ApiError(403, 'forbidden', PROVISIONER_READS_NO_USAGE);
  if (emitsFor !== undefined || platformRoles.has('emitter'))
    throw new ApiError(403, 'forbidden', EMITTER_READS_NOTHING);
}

const EMITTER_READS_NOTHING =
  'This API key or token has the role emitter, which may only send events to the collector. Use a key or token with the role admin, member or operator.';
const PROVISIONER_READS_NO_USAGE =
  'This API key or token has the role provisioner, which may only name accounts and manage their API keys. Use a key or token with the role admin, member or operator.';

export function requireLister(caller: Caller): void {
  if (!isProvisioner(caller)) requireReader(caller);
}

export function requireProvisioner(caller: Caller): void {
  if (!isProvisioner(caller)) throw new ApiError(403, 'forbidden', PROVISIONERS_ONLY);
}

const PROVISIONERS_ONLY =
  'Only a provisioner may name accounts. Create a key with meterline keys create --role provisioner, or use a token with that role.';

/** Returns the caller's role in the account. @throws ApiError `forbidden`, with the same message whether or not the account exists */
export function requireMembership(caller: Caller, account: string): Role {
  requireReader(caller);
  const role = roleIn(caller, account);
  if (!role) throw notAMember();
  return role;
}

function roleIn(caller: Caller, account: string): Role | undefined {
  return isOperator(caller) ? 'admin' : caller.roles.get(account);
}

/** Requires an admin of the account, because only admins may change anything. @throws ApiError `forbidden` */
export function requireWriter(caller: Caller, account: string): void {
  if (mayWrite(caller, account)) return;
  throw isOperator(caller) ? readOnlyOperator() : adminsOnly();
}

export function mayWrite({ roles }: Caller, account: string): boolean {
  return roles.get(account) === 'admin';
}

function readOnlyOperator(): ApiError {
  const message =
    'This API key or token has the role operator, which may read every account but change nothing. Use the key of an admin of the account.';
  return new ApiError(403, 'forbidden', message);
}

/** Returns the accounts whose keys the caller may manage as an admin or a provisioner. @throws ApiError `forbidden` if there are none */
export function requireKeyManager(caller: Caller): readonly string[] | 'all' {
  if (isProvisioner(caller)) return 'all';
  requireReader(caller);
  const accounts = administered(caller);
  if (accounts.length > 0) return accounts;
  throw isOperator(caller) ? readOnlyOperator() : adminsOnly();
}

function administered({ roles }: Caller): readonly string[] {
  return [...roles].flatMap(([account, role]) => (role === 'admin' ? [account] : []));
}

export function requireAdmin(role: Role): void {
  if (role !== 'admin') throw adminsOnly();
}

/**
 * Returns the accounts whose events the caller may send. An API key needs the role `emitter`. A token needs the scope `admin`, and either
 * the role `emitter` or the role `admin` in an account. Source: docs/decisions/0016.
 * @throws ApiError `insufficient_scope`, or `forbidden` if there are no accounts
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
    'This API key or token may not send events. Create a key with meterline keys create --role emitter, or use the token of an admin of the account.';
  return new ApiError(403, 'forbidden', message);
}
