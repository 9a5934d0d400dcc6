/** What a caller may do. Source: the API specification, section "Authentication", and DESIGN section 7. */
import type { Role } from '@meterline/access';
import { accessDenied, insufficientScope } from '../http/errors.js';
import type { Caller } from './caller.js';

export type Scope = 'admin' | 'apiKey:write';

/** Scopes limit JWTs; an API key may do what its role may. @throws ApiError `insufficient_scope` */
export function requireScope({ scopes }: Caller, scope: Scope): void {
  if (scopes && !scopes.has(scope)) throw insufficientScope(scope);
}

/** The caller's role in the account. @throws ApiError `forbidden`, the same whether there is such an account or not */
export function requireMembership({ roles }: Caller, account: string): Role {
  const role = roles.get(account);
  if (!role) throw accessDenied();
  return role;
}

/** @throws ApiError `forbidden` */
export function requireAdmin(role: Role): void {
  if (role !== 'admin') throw accessDenied();
}
