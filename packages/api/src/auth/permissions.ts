/** Who is asking, and what that caller may do. Source: the API specification, section "Authentication", and DESIGN section 7. */
import type { PlatformRole, Role } from '@meterline/service/access';
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
  /** The roles for all accounts. */
  readonly platformRoles: ReadonlySet<PlatformRole>;
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
  'This API key or token has the role emitter: it may send events to the collector, and read nothing. Use one with the role admin or member.';
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
  const accounts = [...caller.roles].flatMap(([account, role]) => (role === 'admin' ? [account] : []));
  if (accounts.length > 0) return accounts;
  throw isOperator(caller) ? operatorsChangeNothing() : adminsOnly();
}

/** @throws ApiError `forbidden` */
export function requireAdmin(role: Role): void {
  if (role !== 'admin') throw adminsOnly();
}

/**
 * May the caller send events of the account? An API key needs the role `emitter`; a token the scope `admin` and that role or the role of an
 * admin. Source: docs/decisions/0016.
 * @throws ApiError `insufficient_scope`; `forbidden`, the same for every account that is not the caller's
 */
export function requireEmitter(caller: Caller, account: string): void {
  requireScope(caller, 'admin');
  const { emitsFor, keyId, platformRoles, roles } = caller;
  if (emitsFor === account || platformRoles.has('emitter')) return;
  if (emitsFor !== undefined) throw notItsEmitter();
  const role = roles.get(account);
  if (role === undefined) throw notAMember();
  if (keyId !== undefined) throw new ApiError(403, 'forbidden', KEY_READS_ONLY);
  if (role !== 'admin') throw new ApiError(403, 'forbidden', MEMBER_READS_ONLY);
}

const KEY_READS_ONLY =
  'This API key may read and not send events; send them with a key of the role emitter, such as meterline keys create --role emitter makes.';
const MEMBER_READS_ONLY =
  'A member of the account may read and not send events; send them with the token of an admin, or an API key of the role emitter.';
