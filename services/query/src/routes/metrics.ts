/** GET /v0/accounts/{accountId}/metrics */
import type { RequestHandler } from 'express';
import type { Authenticate } from '../auth/authenticate.js';
import { requireAdmin, requireMembership, requireScope } from '../auth/authorise.js';
import { parseMetricsRequest, readsWorkspaces } from '../contracts/metrics-parameters.js';
import { applyVersion } from '../contracts/version.js';
import { rawQuery } from '../http/request-checks.js';
import { shapeAnswer } from '../metrics/answer.js';
import { metricsCursorBinding } from '../metrics/cursor.js';
import { writeJson } from '../metrics/json.js';
import { type PagedMetrics, pagePosition } from '../metrics/paged-metrics.js';
import type { CursorCodec } from '../paging/cursor-codec.js';

export interface MetricsRouteDependencies {
  readonly authenticate: Authenticate;
  readonly cursors: CursorCodec;
  readonly metrics: PagedMetrics;
}

export function metricsRoute({
  authenticate,
  cursors,
  metrics,
}: MetricsRouteDependencies): RequestHandler<{ accountId: string }> {
  return async (request, response) => {
    const { accountId } = request.params;
    const caller = await authenticate(request);
    applyVersion(request, response);
    requireScope(caller, 'admin');
    const role = requireMembership(caller, accountId);

    const asked = parseMetricsRequest(rawQuery(request));
    const binding = metricsCursorBinding(caller, accountId, asked);
    const position = asked.cursor === '' ? undefined : cursors.open(asked.cursor, binding, pagePosition);
    if (readsWorkspaces(asked)) requireAdmin(role);

    const page = await (position
      ? metrics.next(caller.id, position, asked)
      : metrics.first(caller.id, accountId, asked));
    const nextCursor = page.next ? cursors.issue(binding, page.next, page.next.storedAt) : '';
    response.type('json').send(writeJson(shapeAnswer(asked, page, nextCursor)));
  };
}
