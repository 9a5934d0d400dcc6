/** GET /v0/accounts/{accountId}/metrics/enums/… */
import { GROUP_BY_DIMENSIONS } from '@meterline/catalog';
import { readResourceTypes, type Warehouse } from '@meterline/warehouse';
import type { RequestHandler } from 'express';
import { type Authenticate, requireMembership, requireScope } from '../auth/authenticate.js';
import { orStorageUnavailable } from '../http/errors.js';
import { refuseParameters } from '../http/query-parameters.js';
import { applyVersion, rawQuery } from '../http/request-checks.js';
import type { ReadSealed } from './pages.js';
import { parseWindowRequest } from './request.js';

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
    const sealed = await orStorageUnavailable(readSealed());
    response.json({ values: await orStorageUnavailable(readResourceTypes(warehouse, accountId, window, sealed)) });
  };
}
