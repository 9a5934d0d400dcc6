import type { IncomingMessage, ServerResponse } from 'node:http';
import {
  type Authenticate,
  applyVersion,
  type ByteBudget,
  type Caller,
  principalOf,
  rawQuery,
  requireMembership,
  requireNoParameters,
  requireReader,
  requireScope,
  requireWriter,
} from '@meterline/api';
import type { remembered } from '@meterline/service';
import type { Account, AccountDirectory, ApiKeyStore } from '@meterline/service/access';
import type { AlertStore, AllowedHosts } from '@meterline/service/alerts';
import type { ViewStore } from '@meterline/service/views';
import type { Request } from 'express';
import type { Admission } from '../admission/admission.js';
import type { PagesDependencies } from '../metrics/pages.js';
import type { ResponseCache } from '../metrics/response-cache.js';
import type { CursorCodec } from './paging.js';

export interface RouteDependencies extends PagesDependencies {
  readonly accounts: AccountDirectory;
  readonly alerts: AlertStore;
  readonly allowedHosts: AllowedHosts;
  /** Whether the operator has set a mail server for alerts. */
  readonly sendsMail: boolean;
  /** The public address of the page, for links in messages. */
  readonly pageUrl: string | undefined;
  readonly admission: Admission;
  readonly authenticate: Authenticate;
  readonly views: ViewStore;
  readonly budget: ByteBudget;
  readonly cache: ResponseCache;
  readonly cursors: CursorCodec;
  readonly keys: ApiKeyStore;
  /** The cached list of registered accounts. A request that registers an account must discard the cached list. */
  readonly registered: ReturnType<typeof remembered<Account[]>>;
}

export type Requires<Name extends keyof RouteDependencies = never> = Pick<
  RouteDependencies,
  'admission' | 'authenticate' | Name
>;

/**
 * Authenticates a request, checks its scope and rights, and counts it for the rate limits. A request of an operator counts for the
 * operator, not for the account that it reads.
 * @param accountId undefined if the request is about all accounts of the caller
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

/**
 * Admits a change by an admin of the account. Rejects parameters. Call this before you check the body or look up what the request changes.
 */
export async function admitWriter(
  dependencies: Requires,
  request: Request<{ accountId: string }>,
  response: ServerResponse,
): Promise<void> {
  const { accountId } = request.params;
  const { caller } = await admitMember(dependencies, request, response, accountId);
  requireWriter(caller, accountId);
  requireNoParameters(rawQuery(request));
}
