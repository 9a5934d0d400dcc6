/** Checks what a caller may do. Source: the API specification, section "Authentication", and DESIGN section 7. */
import type { PlatformRole, Role } from '@meterline/service/access';
import type { Principal } from '../admission/principal.js';
import { ApiError, adminsOnly, insufficientScope, notAMember } from '../http/errors.js';

export interface Caller {
  /** The service account of an API key or the subject of a JWT. Unchanged when the token is renewed. */
  readonly id: string;
  /** ID of the API key. Undefined for a JWT. */
  readonly keyId?: string;
  /** Scopes of a JWT. Undefined for an API key, which needs no scopes. */
  readonly scopes: ReadonlySet<string> | undefined;
  readonly roles: ReadonlyMap<string, Role>;
  /** Account of an emitter's key. The key may send events of the account, but read nothing. */
  readonly emitsFor?: string;
  readonly platformRoles: ReadonlySet<PlatformRole>;
  /** Names of accounts from a JWT. Other accounts have their registered names. */
  readonly accountNames?: ReadonlyMap<string, string>;
}

/**
 * Returns the principal to charge a request to if the request names no account. A caller with several accounts, or none, counts as an
 * account of its own.
 * @param accounts the accounts that the request may be about
 */
export function principalOf(
  { id, roles, emitsFor }: Caller,
  accounts: Iterable<string> = emitsFor === undefined ? roles.keys() : [emitsFor],
): Principal {
  const [account, ...others] = accounts;
  // Never the ID of a real account, because IDs have no control characters.
  return { account: account === undefined || others.length > 0 ? `\0${id}` : account, caller: id };
}

export const SCOPES = ['admin', 'apiKey:list', 'apiKey:write'] as const;
export type Scope = (typeof SCOPES)[number];

/** Scopes limit only JWTs. An API key is limited by its role alone. @throws ApiError `insufficient_scope` */
export function requireScope({ scopes }: Caller, scope: Scope): void {
  if (scopes && !scopes.has(scope)) throw insufficientScope(scope);
}

export function isOperator({ platformRoles }: Caller): boolean {
  return platformRoles.has('operator');
}

export function isProvisioner({ platformRoles }: Caller): boolean {
  return platformRoles.has('provisioner');
}

/** @throws ApiError `forbidden` if the caller may only send events, or only manage accounts and keys */
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

/** @throws ApiError `forbidden` if the caller may not list accounts */
export function requireLister(caller: Caller): void {
  if (!isProvisioner(caller)) requireReader(caller);
}

/** @throws ApiError `forbidden` */
export function requireProvisioner(caller: Caller): void {
  if (!isProvisioner(caller)) throw new ApiError(403, 'forbidden', PROVISIONERS_ONLY);
}

const PROVISIONERS_ONLY =
  'Only a provisioner may name accounts. Create a key with meterline keys create --role provisioner, or use a token with that role.';

/** Returns the caller's role in the account. @throws ApiError `forbidden`, the same error whether or not the account exists */
export function requireMembership(caller: Caller, account: string): Role {
  requireReader(caller);
  const role = roleIn(caller, account);
  if (!role) throw notAMember();
  return role;
}

function roleIn(caller: Caller, account: string): Role | undefined {
  return isOperator(caller) ? 'admin' : caller.roles.get(account);
}

/** Required for changes. @throws ApiError `forbidden` unless the caller is an admin of the account */
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

/** Returns the accounts whose keys the caller may manage, as an admin or provisioner. @throws ApiError `forbidden` if there are none */
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

/** @throws ApiError `forbidden` */
export function requireAdmin(role: Role): void {
  if (role !== 'admin') throw adminsOnly();
}

/**
 * Returns the accounts whose events the caller may send. An API key needs the role `emitter`. A token needs the scope `admin` and either that
 * role or the role of an admin of an account. Source: docs/decisions/0016.
 * @throws ApiError `insufficient_scope`; `forbidden` if there are no accounts
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
