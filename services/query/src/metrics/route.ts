/** GET /v0/accounts/{accountId}/metrics */

import type { Role } from '@meterline/access';
import {
  type Authenticate,
  applyVersion,
  rawQuery,
  requireAdmin,
  requireMembership,
  requireScope,
  type UnsentBytes,
} from '@meterline/api';
import { GROUP_BY_DIMENSIONS } from '@meterline/catalog';
import type { Request, RequestHandler, Response } from 'express';
import type { Admission } from '../admission/admission.js';
import type { CursorBinding, CursorCodec } from '../http/cursor-codec.js';
import { type MetricsPages, pagePosition } from './pages.js';
import { type MetricsRequest, parseMetricsRequest, readsWorkspaces } from './request.js';
import { metricsResponse, writeJson } from './response.js';

/** What decides whether a caller may ask about an account, and how often. */
export interface EntryDependencies {
  readonly admission: Admission;
  readonly authenticate: Authenticate;
}

interface MetricsRouteDependencies extends EntryDependencies {
  readonly cursors: CursorCodec;
  readonly pages: MetricsPages;
  readonly unsent: UnsentBytes;
}

export function metricsRoute({
  cursors,
  pages,
  unsent,
  ...entry
}: MetricsRouteDependencies): RequestHandler<{ accountId: string }> {
  return async (request, response) => {
    const { accountId, party, role, visit } = await enterAccount(entry, request, response, true);
    try {
      const query = parseMetricsRequest(rawQuery(request));
      const binding = cursorBinding(role, accountId, query);
      const position = query.cursor === '' ? undefined : cursors.open(query.cursor, binding, pagePosition);
      if (readsWorkspaces(query)) requireAdmin(role);

      unsent.requireRoom(party);
      // A member may not learn which workspaces there are.
      const asked = { ...query, hidesWorkspace: role !== 'admin' };
      const asker = { accountId, warehouse: await visit.turn() };
      const page = await (position ? pages.next(asker, position, asked) : pages.first(asker, asked));
      visit.leave();
      const nextCursor = page.next ? cursors.issue(binding, page.next, page.next.askedAt) : '';
      unsent.sendJson(request, response, party, writeJson(metricsResponse(query, page, nextCursor)));
    } finally {
      visit.leave();
    }
  };
}

/**
 * The first steps of every question about an account: who asks, whether they may, and that the request is counted.
 * @param asksWarehouse whether the visit will take a turn
 * @throws ApiError `unauthorized`, `invalid_api_version`, `insufficient_scope`, `forbidden`, `too_many_requests`
 */
export async function enterAccount(
  { admission, authenticate }: EntryDependencies,
  request: Request<{ accountId: string }>,
  response: Response,
  asksWarehouse: boolean,
) {
  const { accountId } = request.params;
  const caller = await authenticate(request);
  applyVersion(request, response);
  requireScope(caller, 'admin');
  const role = requireMembership(caller, accountId);
  const party = { account: accountId, caller: caller.id };
  const visit = await admission.enter(party, response, asksWarehouse);
  return { accountId, party, role, visit };
}

/**
 * Binds a cursor to account, role and every parameter but `limit`, in canonical form: neither the order of groupBy nor how a
 * time is written matters. To the role, because an admin's pages show what a member's do not; not to a key: anyone who may
 * ask the question may go on with its answer.
 */
function cursorBinding(role: Role, accountId: string, request: MetricsRequest): CursorBinding {
  const { window, resolution, groupBy, filters, excluded } = request;
  return [
    'metrics',
    accountId,
    role,
    [window.startTime, window.endTime],
    resolution,
    groupBy,
    // null in JSON where there is no filter.
    GROUP_BY_DIMENSIONS.map((dimension) => filters[dimension]),
    GROUP_BY_DIMENSIONS.map((dimension) => excluded[dimension]),
  ];
}
