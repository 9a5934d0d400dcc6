/** GET /v0/accounts/{accountId}/metrics/enums/… */
import { rawQuery, refuseParameters, requireAdmin } from '@meterline/api';
import { BILLING_DIMENSIONS, DIMENSIONS, GROUP_BY_DIMENSIONS } from '@meterline/catalog';
import { readResourceTypes, shardNumber } from '@meterline/warehouse';
import type { RequestHandler } from 'express';
import { orStorageUnavailable } from '../http/errors.js';
import { whileEventsLast } from './kept-events.js';
import type { ReadCells } from './readable-cells.js';
import { parseResourceTypesRequest, readsWorkspaces } from './request.js';
import { type EntryDependencies, enterAccount } from './route.js';

interface ResourceTypesRouteDependencies extends EntryDependencies {
  readonly readCells: ReadCells;
  readonly shards?: number | undefined;
}

/** The dimensions that groupBy may name. */
export function groupByEnumRoute(dependencies: EntryDependencies): RequestHandler<{ accountId: string }> {
  return staticEnumRoute(dependencies, GROUP_BY_DIMENSIONS);
}

/** What is billed, with its unit. An extension: clients need no table of their own. */
export function billingDimensionsEnumRoute(dependencies: EntryDependencies): RequestHandler<{ accountId: string }> {
  const values = BILLING_DIMENSIONS.map((billingDimension) => ({ billingDimension, ...DIMENSIONS[billingDimension] }));
  return staticEnumRoute(dependencies, values);
}

/** The same for every account. */
function staticEnumRoute(entry: EntryDependencies, values: readonly unknown[]): RequestHandler<{ accountId: string }> {
  return async (request, response) => {
    await enterAccount(entry, request, response, request.params.accountId, false);
    refuseParameters(rawQuery(request));
    response.json({ values });
  };
}

/** The resource types with at least one event in the window, of those that the filters select. */
export function resourceTypesEnumRoute({
  readCells,
  shards = 1,
  ...entry
}: ResourceTypesRouteDependencies): RequestHandler<{ accountId: string }> {
  return async (request, response) => {
    const { accountId, role, visit } = await enterAccount(entry, request, response, request.params.accountId, true);
    try {
      const asked = parseResourceTypesRequest(rawQuery(request));
      if (readsWorkspaces(asked)) requireAdmin(role);
      const warehouse = await visit.turn();
      const cells = await orStorageUnavailable(readCells({ accountId, warehouse }, asked.window));
      const values = await orStorageUnavailable(
        whileEventsLast(warehouse, asked.window, cells, shardNumber(accountId, shards), (known) =>
          readResourceTypes(warehouse, { ...asked, accountId }, known),
        ),
      );
      response.json({ values });
    } finally {
      visit.leave();
    }
  };
}
