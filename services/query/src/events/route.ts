/**
 * GET /v0/accounts/{accountId}/events: the events behind a figure, with what they cost and why. For admins: events name
 * workspaces. An extension of the platform's API.
 */
import { QueryParameters, rawQuery, requireAdmin } from '@meterline/api';
import {
  DEFAULT_EVENTS_PAGE,
  ENTRY_FIELD,
  EVENTS_PARAMETERS,
  formatTimestamp,
  GROUP_BY_DIMENSIONS,
  isBillingDimension,
  isUuid,
  REPEATABLE_PARAMETERS,
} from '@meterline/catalog';
import { type ListedEvent, readBounds, readEventList, type StoredPayload } from '@meterline/warehouse';
import type { RequestHandler } from 'express';
import { z } from 'zod';
import { eventsDropped, orStorageUnavailable } from '../http/errors.js';
import { admitMember, type RouteDependencies } from '../http/member.js';
import { readFilters, readWindow } from '../metrics/request.js';
import { type ExactJson, exactNumber, writeJson } from '../metrics/response.js';
import type { KnownBooks, PriceBooks } from './price-books.js';

/** The order of the list. In another order a cursor would mean another place. */
const ORDER = 'hour, text of id';

/** The last event of the page before; its id may be of any version and variant, which z.uuid() does not take. */
const eventPlace = z.object({ hour: z.int(), eventId: z.string().refine(isUuid) });

export function eventsRoute(dependencies: RouteDependencies, books: PriceBooks): RequestHandler<{ accountId: string }> {
  const { cursors, budget } = dependencies;
  return async (request, response) => {
    const { accountId } = request.params;
    const { admitted, principal, role } = await admitMember(dependencies, request, response, accountId);
    try {
      requireAdmin(role);
      const { limit, cursor, ...selection } = parseEventsRequest(rawQuery(request));
      const binding = ['events', ORDER, accountId, selection];
      const after = cursor === '' ? undefined : cursors.open(cursor, binding, eventPlace);

      budget.requireRoom(principal.account);
      const warehouse = await admitted.acquire();
      const { events, next } = await orStorageUnavailable(
        readEventList(warehouse, { ...selection, accountId, after, limit }),
      );
      // Read after them: those that were dropped meanwhile are noticed.
      const { droppedBefore } = await orStorageUnavailable(readBounds(warehouse));
      // No event is older than 1970, so nothing has been dropped while the bound is there.
      if (droppedBefore > 0 && selection.window.startTime < droppedBefore) throw eventsDropped(droppedBefore);
      const known = await orStorageUnavailable(books.of(warehouse, events));
      admitted.release();
      const nextCursor = next ? cursors.issue(binding, next) : '';
      const page = {
        data: events.map((event) => eventJson(event, accountId, known)),
        meta: { hasMore: nextCursor !== '', nextCursor },
      };
      budget.send(request, response, principal.account, Buffer.from(writeJson(page)));
    } finally {
      admitted.release();
    }
  };
}

/** @throws ApiError `invalid_parameter` with every error */
function parseEventsRequest(rawQuery: string) {
  const parameters = new QueryParameters(rawQuery, {
    names: Object.keys(EVENTS_PARAMETERS),
    mayBeEmpty: ['cursor'],
    mayRepeat: REPEATABLE_PARAMETERS,
  });
  const window = readWindow(parameters);
  const selected = readFilters(parameters);
  const includesVoided = parameters.optional('includeVoided', EVENTS_PARAMETERS.includeVoided) ?? false;
  const limit = parameters.optional('limit', EVENTS_PARAMETERS.limit) ?? DEFAULT_EVENTS_PAGE;
  const cursor = parameters.optional('cursor', EVENTS_PARAMETERS.cursor) ?? '';
  if (!window || !parameters.areValid) throw parameters.refusal();
  return { window, ...selected, includesVoided, limit, cursor };
}

function eventJson({ newest, replaced }: ListedEvent, accountId: string, books: KnownBooks): ExactJson {
  return {
    eventId: newest.id,
    ...payloadJson(newest, accountId, books),
    history: replaced.map((payload) => payloadJson(payload, accountId, books)),
  };
}

function payloadJson(
  payload: StoredPayload,
  accountId: string,
  books: KnownBooks,
): Readonly<Record<string, ExactJson | undefined>> {
  return {
    timestamp: formatTimestamp(payload.at),
    ...Object.fromEntries(GROUP_BY_DIMENSIONS.map((dimension) => [ENTRY_FIELD[dimension], payload[dimension]])),
    usage: exactNumber(payload.usage),
    cost: exactNumber(payload.cost),
    voided: payload.voided,
    revision: payload.revision,
    priceRevision: payload.price_revision,
    priceBook: payload.price_book,
    price: priceJson(payload, accountId, books),
  };
}

function priceJson(payload: StoredPayload, accountId: string, books: KnownBooks): ExactJson | undefined {
  const { billing_dimension: dimension, price_book: version, at } = payload;
  const price = isBillingDimension(dimension) ? books.get(version)?.priceAt(accountId, dimension, at) : undefined;
  if (!price) return undefined;
  return {
    amount: exactNumber(price.amount),
    per: exactNumber(price.per),
    effectiveFrom: formatTimestamp(price.effectiveFrom),
  };
}
