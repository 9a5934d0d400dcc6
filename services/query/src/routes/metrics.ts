/** GET /v0/accounts/{accountId}/metrics */
import { readMetrics, type Warehouse } from '@meterline/warehouse';
import type { RequestHandler } from 'express';
import type { Authenticate } from '../auth/authenticate.js';
import { requireAdmin, requireMembership, requireScope } from '../auth/authorise.js';
import { parseMetricsRequest, readsWorkspaces } from '../contracts/metrics-parameters.js';
import { applyVersion } from '../contracts/version.js';
import { storageAnswer } from '../http/outages.js';
import { rawQuery } from '../http/request-checks.js';
import { shapeAnswer } from '../metrics/answer.js';
import { groupRank, metricsCursorBinding, rankOf } from '../metrics/cursor.js';
import { writeJson } from '../metrics/json.js';
import { pageOf, planMetrics } from '../metrics/plan.js';
import type { CursorCodec } from '../paging/cursor-codec.js';

export interface MetricsRouteDependencies {
  readonly authenticate: Authenticate;
  readonly cursors: CursorCodec;
  readonly warehouse: Warehouse;
}

export function metricsRoute({
  authenticate,
  cursors,
  warehouse,
}: MetricsRouteDependencies): RequestHandler<{ accountId: string }> {
  return async (request, response) => {
    const { accountId } = request.params;
    const caller = await authenticate(request);
    applyVersion(request, response);
    requireScope(caller, 'admin');
    const role = requireMembership(caller, accountId);

    const asked = parseMetricsRequest(rawQuery(request));
    const binding = metricsCursorBinding(caller, accountId, asked);
    const after = asked.cursor === '' ? undefined : cursors.open(asked.cursor, binding, groupRank);
    if (readsWorkspaces(asked)) requireAdmin(role);

    const answer = await storageAnswer(readMetrics(warehouse, planMetrics(accountId, asked, after)));
    const page = pageOf(answer, asked);
    const nextCursor = page.lastBeforeMore ? cursors.issue(binding, rankOf(page.lastBeforeMore, asked)) : '';
    response.type('json').send(writeJson(shapeAnswer(asked, page, nextCursor)));
  };
}
