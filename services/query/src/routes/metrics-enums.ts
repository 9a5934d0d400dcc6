/** GET /v0/accounts/{accountId}/metrics/enums/… */
import { GROUP_BY_DIMENSIONS } from '@meterline/catalog';
import { readResourceTypes, type Warehouse } from '@meterline/warehouse';
import type { RequestHandler } from 'express';
import type { Authenticate } from '../auth/authenticate.js';
import { requireMembership, requireScope } from '../auth/authorise.js';
import { refuseParameters } from '../contracts/query-parameters.js';
import { applyVersion } from '../contracts/version.js';
import { parseWindowRequest } from '../contracts/window.js';
import { storageAnswer } from '../http/outages.js';
import { rawQuery } from '../http/request-checks.js';
import type { ReadSealed } from '../metrics/seal-reader.js';

export interface ResourceTypesRouteDependencies {
  readonly authenticate: Authenticate;
  readonly readSealed: ReadSealed;
  readonly warehouse: Warehouse;
}

/** The dimensions that groupBy may name; the same for every account. */
export function groupByEnumRoute(authenticate: Authenticate): RequestHandler<{ accountId: string }> {
  return async (request, response) => {
    const caller = await authenticate(request);
    applyVersion(request, response);
    requireScope(caller, 'admin');
    requireMembership(caller, request.params.accountId);
    refuseParameters(rawQuery(request));
    response.json({ values: GROUP_BY_DIMENSIONS });
  };
}

/** The resource types with at least one event in the window. */
export function resourceTypesEnumRoute({
  authenticate,
  readSealed,
  warehouse,
}: ResourceTypesRouteDependencies): RequestHandler<{ accountId: string }> {
  return async (request, response) => {
    const { accountId } = request.params;
    const caller = await authenticate(request);
    applyVersion(request, response);
    requireScope(caller, 'admin');
    requireMembership(caller, accountId);
    const window = parseWindowRequest(rawQuery(request));
    const sealed = await storageAnswer(readSealed());
    response.json({ values: await storageAnswer(readResourceTypes(warehouse, accountId, window, sealed)) });
  };
}
