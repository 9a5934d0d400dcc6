/**
 * Handles GET /v0/accounts/{accountId}/events, an extension of the platform's API: lists the events behind a total, with their cost and
 * price. Only admins may read events, because events name workspaces.
 */
import { QueryParameters, rawQuery, requireAdmin, requireRoomForResponse, sendJson } from '@meterline/api';
import {
  DEFAULT_EVENTS_PAGE,
  ENTRY_FIELD,
  EVENTS_PARAMETERS,
  formatTimestamp,
  GROUP_BY_DIMENSIONS,
  isBillingDimension,
  isDecimalText,
  isUuid,
  REPEATABLE_PARAMETERS,
} from '@meterline/catalog';
import { type ListedEvent, readBounds, readEventList, type StoredPayload } from '@meterline/warehouse';
import type { RequestHandler } from 'express';
import { z } from 'zod';
import { eventsDropped, orStorageUnavailable, tooManyEventsByCost } from '../http/errors.js';
import { admitMember, type Requires } from '../http/member.js';
import { readFilters, readWindow } from '../metrics/request.js';
import { type ExactJson, exactNumber, writeJson } from '../metrics/response.js';
import type { KnownBooks, PriceBooks } from './price-books.js';

/** The order of events with equal hour or cost. Cursors are bound to it, because a position is valid only in the order that it comes from. */
const ORDER = 'hour, text of id';

/** The last event of the previous page. Its ID may be a UUID of any version and variant, some of which z.uuid() would reject. */
const eventPosition = z.object({
  hour: z.int(),
  eventId: z.string().refine(isUuid),
  cost: z.string().refine(isDecimalText).optional(),
});

export function eventsRoute(
  dependencies: Requires<'budget' | 'cursors'>,
  books: PriceBooks,
): RequestHandler<{ accountId: string }> {
  const { cursors, budget } = dependencies;
  return async (request, response) => {
    const { accountId } = request.params;
    const { admitted, principal, role } = await admitMember(dependencies, request, response, accountId);
    try {
      requireAdmin(role);
      const { limit, cursor, ...selection } = parseEventsRequest(rawQuery(request));
      const binding = ['events', ORDER, accountId, selection];
      const after = cursor === '' ? undefined : cursors.open(cursor, binding, eventPosition);

      requireRoomForResponse(budget, principal.account);
      const warehouse = await admitted.acquire();
      const list = await orStorageUnavailable(readEventList(warehouse, { ...selection, accountId, after, limit }));
      if (!list) throw tooManyEventsByCost();
      const { events, next } = list;
      // Read `droppedBefore` after the events, to detect events that were dropped in the meantime.
      const { droppedBefore } = await orStorageUnavailable(readBounds(warehouse));
      // `droppedBefore` is 0 (the year 1970) if no events have been dropped.
      if (droppedBefore > 0 && selection.window.startTime < droppedBefore) throw eventsDropped(droppedBefore);
      const knownBooks = await orStorageUnavailable(books.of(warehouse, events));
      admitted.release();
      const nextCursor = next ? cursors.issue(binding, next) : '';
      const page = {
        data: events.map((event) => eventJson(event, accountId, knownBooks)),
        meta: { hasMore: nextCursor !== '', nextCursor },
      };
      sendJson(budget, principal.account, request, response, Buffer.from(writeJson(page)));
    } finally {
      admitted.release();
    }
  };
}

function parseEventsRequest(rawQuery: string) {
  const parameters = new QueryParameters(rawQuery, {
    names: Object.keys(EVENTS_PARAMETERS),
    mayBeEmpty: ['cursor'],
    mayRepeat: REPEATABLE_PARAMETERS,
  });
  const window = readWindow(parameters);
  const selected = readFilters(parameters);
  const includesVoided = parameters.optional('includeVoided', EVENTS_PARAMETERS.includeVoided) ?? false;
  const orderBy = parameters.optional('orderBy', EVENTS_PARAMETERS.orderBy) ?? 'timestamp';
  const order = parameters.optional('order', EVENTS_PARAMETERS.order) ?? 'asc';
  const limit = parameters.optional('limit', EVENTS_PARAMETERS.limit) ?? DEFAULT_EVENTS_PAGE;
  const cursor = parameters.optional('cursor', EVENTS_PARAMETERS.cursor) ?? '';
  if (!window || !parameters.areValid) throw parameters.error();
  return { window, ...selected, includesVoided, orderBy, order, limit, cursor };
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
