/** Defines the dependencies of routes, and admits requests. */
import type { IncomingMessage, ServerResponse } from 'node:http';
import {
  type Authenticate,
  applyVersion,
  type ByteBudget,
  type Caller,
  principalOf,
  requireMembership,
  requireReader,
  requireScope,
} from '@meterline/api';
import type { remembered } from '@meterline/service';
import type { Account, AccountDirectory, ApiKeyStore } from '@meterline/service/access';
import type { AlertStore, AllowedHosts } from '@meterline/service/alerts';
import type { Admission } from '../admission/admission.js';
import type { PagesDependencies } from '../metrics/pages.js';
import type { ResponseCache } from '../metrics/response-cache.js';
import type { CursorCodec } from './paging.js';

export interface RouteDependencies extends PagesDependencies {
  readonly accounts: AccountDirectory;
  readonly alerts: AlertStore;
  readonly allowedHosts: AllowedHosts;
  readonly admission: Admission;
  readonly authenticate: Authenticate;
  readonly budget: ByteBudget;
  readonly cache: ResponseCache;
  readonly cursors: CursorCodec;
  readonly keys: ApiKeyStore;
  /** Cached list of registered accounts. Requests that register an account discard the cached list. */
  readonly registered: ReturnType<typeof remembered<Account[]>>;
}

/** The dependencies of a route: those for its admission, and the named ones. */
export type Requires<Name extends keyof RouteDependencies = never> = Pick<
  RouteDependencies,
  'admission' | 'authenticate' | Name
>;

/**
 * Authenticates a request, checks its scope and rights, and counts it for the rate limits. Requests of an operator do not count for the
 * account that they read.
 * @param accountId undefined: the request is about all accounts of the caller
 * @param requireRight throws unless the caller may send such a request
 * @throws ApiError `unauthorized`, `invalid_api_version`, `insufficient_scope`, `forbidden`, `too_many_requests`
 */
export async function admitCaller(
  { admission, authenticate }: Requires,
  request: IncomingMessage,
  response: ServerResponse,
  accountId?: string,
  requireRight: (caller: Caller) => void = requireReader,
) {
  const caller = await authenticate(request);
  const version = applyVersion(request, response);
  requireScope(caller, 'admin');
  requireRight(caller);
  if (accountId !== undefined) requireMembership(caller, accountId);
  const isOfAccount = accountId !== undefined && caller.roles.has(accountId);
  const principal = isOfAccount ? { account: accountId, caller: caller.id } : principalOf(caller);
  return { admitted: await admission.admit(principal, response), caller, principal, version };
}

export async function admitMember(
  dependencies: Requires,
  request: IncomingMessage,
  response: ServerResponse,
  accountId: string,
) {
  const admission = await admitCaller(dependencies, request, response, accountId);
  return { ...admission, role: requireMembership(admission.caller, accountId) };
}
