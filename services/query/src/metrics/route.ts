/** GET /v0/accounts/{accountId}/metrics */
import type { RequestHandler } from 'express';
import { type Authenticate, type Caller, requireAdmin, requireMembership, requireScope } from '../auth/authenticate.js';
import type { CursorBinding, CursorCodec } from '../http/cursor-codec.js';
import { applyVersion, rawQuery } from '../http/request-checks.js';
import { type MetricsPages, pagePosition } from './pages.js';
import { type MetricsRequest, parseMetricsRequest, readsWorkspaces } from './request.js';
import { metricsResponse, writeJson } from './response.js';

export interface MetricsRouteDependencies {
  readonly authenticate: Authenticate;
  readonly cursors: CursorCodec;
  readonly pages: MetricsPages;
}

export function metricsRoute({
  authenticate,
  cursors,
  pages,
}: MetricsRouteDependencies): RequestHandler<{ accountId: string }> {
  return async (request, response) => {
    const { accountId } = request.params;
    const caller = await authenticate(request);
    applyVersion(request, response);
    requireScope(caller, 'admin');
    const role = requireMembership(caller, accountId);

    const query = parseMetricsRequest(rawQuery(request));
    const binding = cursorBinding(caller, accountId, query);
    const position = query.cursor === '' ? undefined : cursors.open(query.cursor, binding, pagePosition);
    if (readsWorkspaces(query)) requireAdmin(role);

    const page = await (position ? pages.next(caller.id, position, query) : pages.first(caller.id, accountId, query));
    const nextCursor = page.next ? cursors.issue(binding, page.next, page.next.storedAt) : '';
    response.type('json').send(writeJson(metricsResponse(query, page, nextCursor)));
  };
}

/** Binds a cursor to every parameter but `limit`, in canonical form: neither the order of groupBy nor how a time is written matters. */
function cursorBinding(caller: Caller, accountId: string, request: MetricsRequest): CursorBinding {
  const { window, resolution, groupBy, filters } = request;
  const { workspace, resource_type, resource_name, resource_uuid, billing_dimension } = filters;
  return [
    'metrics',
    caller.id,
    accountId,
    [window.startTime, window.endTime],
    resolution,
    groupBy,
    // No filter (null in JSON) is not the same as a filter by "".
    [workspace, resource_type, resource_name, resource_uuid, billing_dimension],
  ];
}
