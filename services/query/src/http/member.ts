/** The dependencies of the routes, and the first steps of every request. */
import type { IncomingMessage, ServerResponse } from 'node:http';
import {
  type Authenticate,
  applyVersion,
  type Caller,
  principalOf,
  type ResponseBudget,
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
  /** Private hosts that webhooks may go to. */
  readonly allowedHosts: AllowedHosts;
  /** Who may query how often, and how many at once. */
  readonly admission: Admission;
  readonly authenticate: Authenticate;
  readonly budget: ResponseBudget;
  readonly cache: ResponseCache;
  readonly cursors: CursorCodec;
  readonly keys: ApiKeyStore;
  /** The accounts of the directory. A request that registers an account discards the reading. */
  readonly registered: ReturnType<typeof remembered<Account[]>>;
}

/**
 * The first steps of every request: who sends it, whether they may, and that it is counted. An operator's never count for the
 * account that they are about.
 * @param accountId undefined: it is about all accounts of the caller
 * @param requireRight throws unless the caller may make such a request
 * @throws ApiError `unauthorized`, `invalid_api_version`, `insufficient_scope`, `forbidden`, `too_many_requests`
 */
export async function admitCaller(
  { admission, authenticate }: RouteDependencies,
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

/** The first steps of a request about one account. @throws as {@link admitCaller} */
export async function admitMember(
  dependencies: RouteDependencies,
  request: IncomingMessage,
  response: ServerResponse,
  accountId: string,
) {
  const admission = await admitCaller(dependencies, request, response, accountId);
  return { ...admission, role: requireMembership(admission.caller, accountId) };
}
