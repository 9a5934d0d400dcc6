/** Handles GET /v0/accounts/{accountId}/metrics, GET /v0/metrics, and the endpoints that list values for filters. */
import { createHash } from 'node:crypto';
import {
  type Caller,
  isOperator,
  rawQuery,
  requireAdmin,
  requireMembership,
  requireNoParameters,
  requireRoomForResponse,
  sendJson,
} from '@meterline/api';
import { ACCOUNTS_METRICS_PARAMETERS, GROUP_BY_DIMENSIONS, METRICS_PARAMETERS } from '@meterline/catalog';
import type { Role } from '@meterline/service/access';
import { type Accounts, readResourceTypes } from '@meterline/warehouse';
import type { RequestHandler } from 'express';
import { orStorageUnavailable } from '../http/errors.js';
import { admitCaller, admitMember, type Requires } from '../http/member.js';
import type { CursorBinding } from '../http/paging.js';
import { firstPage, nextPage, type PagesDependencies, pagePosition, retryIfEventsDropped } from './pages.js';
import { type MetricsRequest, parseMetricsRequest, parseResourceTypesRequest, readsWorkspaces } from './request.js';
import { metricsResponse, writeJson } from './response.js';
import { allowedAgeSeconds, type CachedResponse } from './response-cache.js';

/** Handles queries about one account. Without an `accountId`, handles queries about all accounts of the caller. */
export function metricsRoute(
  dependencies: Requires<'budget' | 'cache' | 'cursors' | keyof PagesDependencies>,
): RequestHandler<{ accountId?: string }> {
  const { budget, cache, cursors } = dependencies;
  return async (request, response) => {
    const { accountId } = request.params;
    // Set Vary here, because a 304 must have it too (RFC 9110, section 15.4.5) and the compression middleware omits it from a 304.
    response.vary('Accept-Encoding');
    const { admitted, caller, principal, version } = await admitCaller(dependencies, request, response, accountId);
    const { account } = principal;
    try {
      const schemas = accountId === undefined ? ACCOUNTS_METRICS_PARAMETERS : METRICS_PARAMETERS;
      const query = parseMetricsRequest(rawQuery(request), schemas);
      const { accounts, role } = subjectOf(caller, accountId, query);
      const binding = cursorBinding(accountId ?? [accounts, query.excluded.account], role, query);
      const position = query.cursor === '' ? undefined : cursors.open(query.cursor, binding, pagePosition);
      if (readsWorkspaces(query)) requireAdmin(role);

      const { account: _subject, ...filters } = query.filters;
      // Hide workspaces from members, who must not learn which workspaces exist.
      const requested = { ...query, filters, hidesWorkspace: role !== 'admin' };
      const compute = async () => {
        requireRoomForResponse(budget, account);
        const scope = { accounts, warehouse: await admitted.acquire() };
        const page = position
          ? await nextPage(dependencies, scope, principal, position, requested)
          : await firstPage(dependencies, scope, JSON.stringify(binding), requested);
        const nextCursor = page.next ? cursors.issue(binding, page.next, page.next.requestedAt) : '';
        return responseOf(writeJson(metricsResponse(query, page, nextCursor)));
      };
      const key = JSON.stringify([version, binding, query.limit]);
      const found = position
        ? { response: await compute(), ageSeconds: undefined }
        : await cache.get(account, key, allowedAgeSeconds(request.headers['cache-control']), compute);
      admitted.release();
      const { body, etag } = found.response;
      const isKnown = matchesEtag(request.headers['if-none-match'], etag);
      // Set these headers last, because error responses do not have them. Clients may store the response, but must revalidate it with
      // If-None-Match.
      response.setHeader('ETag', etag).setHeader('Cache-Control', 'private, no-cache');
      if (found.ageSeconds !== undefined) response.setHeader('Age', Math.floor(found.ageSeconds));
      if (isKnown) response.status(304).end();
      else sendJson(budget, account, request, response, body);
    } finally {
      admitted.release();
    }
  };
}

/**
 * Returns the accounts of a query, and the caller's role in them: `member` if the caller is only a member of at least one of them.
 * @throws ApiError `forbidden` if the caller has no access to an account, whether or not the account exists
 */
function subjectOf(
  caller: Caller,
  accountId: string | undefined,
  { filters, excluded }: MetricsRequest,
): { readonly accounts: Accounts; readonly role: Role } {
  if (accountId !== undefined) return { accounts: [accountId], role: requireMembership(caller, accountId) };
  const { account: left = [] } = excluded;
  for (const account of left) requireMembership(caller, account);
  if (isOperator(caller)) return { accounts: filters.account ?? 'all', role: 'admin' };
  const accounts = (filters.account ?? [...caller.roles.keys()].sort()).filter((account) => !left.includes(account));
  const roles = accounts.map((account) => requireMembership(caller, account));
  return { accounts, role: roles.includes('member') ? 'member' : 'admin' };
}

function responseOf(json: string): CachedResponse {
  // Allocate separately. Buffer.from would place a short body in a shared 8 KB pool, and caching the body would keep the whole pool in
  // memory.
  const body = Buffer.allocUnsafeSlow(Buffer.byteLength(json));
  body.write(json);
  // Use a weak tag (RFC 9110, section 8.8.1), because the body may be sent compressed.
  return { body, etag: `W/"${createHash('sha256').update(body).digest('base64url').slice(0, 22)}"` };
}

/**
 * Returns true if the header `If-None-Match` contains the entity tag, weak or strong (RFC 9110, section 13.1.2). The comparison of Express
 * is not used, because it always returns false for a request with `Cache-Control: no-cache`. That directive is meant for intermediate
 * caches, but `fetch` adds it to every conditional request.
 */
function matchesEtag(condition: string | undefined, etag: string): boolean {
  return condition?.split(',').some((tag) => ['*', etag, etag.replace('W/', '')].includes(tag.trim())) ?? false;
}

/**
 * Returns the values that a cursor is bound to: the accounts, the role, and every parameter except `limit`. They are in canonical form, so
 * the order of `groupBy` and the notation of times do not matter. The role is included because an admin's pages show more than a member's.
 * The API key is not included, so any caller who may run the query may request its later pages.
 */
function cursorBinding(accounts: unknown, role: Role, request: MetricsRequest): CursorBinding {
  const { window, resolution, groupBy, filters, excluded } = request;
  return [
    'metrics',
    accounts,
    role,
    [window.startTime, window.endTime],
    resolution,
    groupBy,
    // A missing filter becomes null in the JSON of the binding.
    GROUP_BY_DIMENSIONS.map((dimension) => filters[dimension]),
    GROUP_BY_DIMENSIONS.map((dimension) => excluded[dimension]),
  ];
}

/** Lists the values of an enum. The values are constant or cached, so the request needs no permit for ClickHouse. */
export function enumRoute(
  dependencies: Requires,
  valuesOf: (accountId: string) => readonly unknown[] | Promise<readonly unknown[]>,
): RequestHandler<{ accountId: string }> {
  return async (request, response) => {
    const { accountId } = request.params;
    await admitMember(dependencies, request, response, accountId);
    requireNoParameters(rawQuery(request));
    response.json({ values: await valuesOf(accountId) });
  };
}

export function resourceTypesRoute(dependencies: Requires<'readRollupState'>): RequestHandler<{ accountId: string }> {
  return async (request, response) => {
    const { accountId } = request.params;
    const { role, admitted } = await admitMember(dependencies, request, response, accountId);
    try {
      const requested = parseResourceTypesRequest(rawQuery(request));
      if (readsWorkspaces(requested)) requireAdmin(role);
      const warehouse = await admitted.acquire();
      const accounts = [accountId];
      const rollups = await orStorageUnavailable(
        dependencies.readRollupState({ accounts, warehouse }, requested.window),
      );
      const values = await orStorageUnavailable(
        retryIfEventsDropped(warehouse, requested.window, rollups, (known) =>
          readResourceTypes(warehouse, { ...requested, accounts, rollups: known }),
        ),
      );
      response.json({ values });
    } finally {
      admitted.release();
    }
  };
}
