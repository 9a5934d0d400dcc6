/** Reads the events that a metrics response was computed from: the current payload of each event, and the payloads that it replaced. */

import { TupleParam } from '@clickhouse/client';
import {
  type DecimalText,
  type EpochMs,
  type EVENT_SORT_KEYS,
  type EVENT_SORT_ORDERS,
  MAX_EVENTS_BY_COST,
  MS_PER_HOUR,
} from '@meterline/catalog';
import { z } from 'zod';
import type { Statement, Warehouse } from '../clickhouse/connection.js';
import { dateTime } from '../rollups/sources.js';
import { eventsOfSpan, filtersOf, type Selection, selectionParameters, withEvents } from './plan.js';
import { decimal } from './read.js';

/** The position of an event in the list. It includes the cost only if the list is ordered by cost. */
export interface EventPlace {
  readonly hour: EpochMs;
  readonly eventId: string;
  readonly cost?: DecimalText | undefined;
}

export interface EventListQuery extends Omit<Selection, 'accounts'> {
  readonly accountId: string;
  readonly includesVoided: boolean;
  readonly orderBy: (typeof EVENT_SORT_KEYS)[number];
  readonly order: (typeof EVENT_SORT_ORDERS)[number];
  readonly after: EventPlace | undefined;
  readonly limit: number;
}

/** Limits the work for one page, no matter how many events the account has or how few of them match the filters. */
export interface EventListLimits {
  /** Maximum number of rows of the account that ClickHouse examines for a page ordered by timestamp. */
  readonly examined: number;
  /** Maximum number of rows of the account that ClickHouse sorts for a page ordered by cost. */
  readonly sorted: number;
  readonly payloads: number;
  /** Maximum total length of all returned strings, in UTF-16 code units. */
  readonly textLength: number;
}

export const EVENT_LIST_LIMITS: EventListLimits = {
  examined: 250_000,
  sorted: MAX_EVENTS_BY_COST,
  payloads: 4_000,
  textLength: 500_000,
};

const LONGEST_HISTORY = 20;

const COLUMNS = `
  toString(event_id) AS id,
  toUnixTimestamp64Milli(timestamp) AS at,
  workspace,
  resource_type,
  resource_name,
  resource_uuid,
  billing_dimension,
  usage,
  cost,
  voided,
  revision,
  price_revision,
  price_book,
  toString(row_version) AS version`;

export const storedPayload = z.object({
  id: z.string(),
  /** Epoch milliseconds. */
  at: z.coerce.number(),
  workspace: z.string(),
  resource_type: z.string(),
  resource_name: z.string(),
  resource_uuid: z.string(),
  billing_dimension: z.string(),
  usage: decimal,
  cost: decimal,
  voided: z.boolean(),
  revision: z.number(),
  price_revision: z.number(),
  price_book: z.number(),
  version: z.string(),
});
export type StoredPayload = z.output<typeof storedPayload>;

export interface ListedEvent {
  readonly newest: StoredPayload;
  /** Payloads that `newest` replaced and that merges have not removed yet, newest first. */
  readonly replaced: readonly StoredPayload[];
}

/** Selects the position that is `examined` rows after the page's start. Ignores the filters, so ClickHouse reads only key columns. */
function lastPlaceStatement({ accountId, window, after, order }: EventListQuery, examined: number): Statement {
  const { startTime, endTime } = withEvents(window);
  return {
    name: 'read_event_list_end',
    query: `
SELECT toUnixTimestamp(event_hour) AS hour, toString(event_id) AS id
FROM usage_events
WHERE account_id = {account_id: String}
  AND event_hour >= {from_hour: UInt32}
  AND event_hour < {to_hour: UInt32}${after ? `\n  AND ${afterCondition(after, order)}` : ''}
ORDER BY ${sortKey(order)}
LIMIT 1 OFFSET {examined: UInt32}`,
    query_params: {
      account_id: accountId,
      from_hour: Math.floor(startTime / MS_PER_HOUR) * (MS_PER_HOUR / 1000),
      to_hour: Math.ceil(endTime / MS_PER_HOUR) * (MS_PER_HOUR / 1000),
      examined,
      ...afterParameters(after),
    },
  };
}

const storedPlace = z
  .object({ hour: z.number(), id: z.string() })
  .transform(({ hour, id }): EventPlace => ({ hour: hour * 1000, eventId: id }));

/** Selects the newest payload of each matching event up to `last`. A revision may change an event's cost, but never its hour or ID. */
export function eventListStatement(query: EventListQuery, last?: EventPlace): Statement {
  const accounts = [query.accountId];
  const { includesVoided, after, limit, orderBy, order } = query;
  const { startTime: from, endTime: to } = withEvents(query.window);
  const conditions = [
    ...eventsOfSpan(accounts, { from, to }, 0),
    ...filtersOf(query).map(({ condition }) => condition),
    ...(includesVoided ? [] : ['NOT voided']),
    ...(after ? [afterCondition(after, order)] : []),
    ...(last ? [keyCondition('last', order === 'asc' ? '<' : '>', '=')] : []),
  ];
  return {
    name: 'read_event_list',
    query: `
SELECT${COLUMNS}
FROM usage_events FINAL
WHERE ${conditions.join('\n  AND ')}
ORDER BY ${orderBy === 'cost' ? `cost ${order}, ` : ''}${sortKey(order)}
LIMIT {limit: UInt32}`,
    query_params: {
      ...selectionParameters({ ...query, accounts }, [{ from, to }]),
      limit,
      ...afterParameters(after),
      ...(last && { last_hour: last.hour / 1000, last_id: last.eventId }),
    },
  };
}

function afterParameters(after: EventPlace | undefined): Statement['query_params'] {
  if (!after) return {};
  const { hour, eventId, cost } = after;
  return { after_hour: hour / 1000, after_id: eventId, ...(cost !== undefined && { after_cost: cost }) };
}

function sortKey(order: EventListQuery['order']): string {
  return `event_hour ${order}, UUIDToNum(event_id) ${order}`;
}

function afterCondition({ cost }: EventPlace, order: EventListQuery['order']): string {
  const sign = order === 'asc' ? '>' : '<';
  const byKey = keyCondition('after', sign);
  if (cost === undefined) return byKey;
  const after = '{after_cost: Decimal(38, 12)}';
  return `(cost ${sign} ${after} OR (cost = ${after} AND ${byKey}))`;
}

/** Compares the key with a position. The first condition lets ClickHouse skip other hours. */
function keyCondition(place: 'after' | 'last', sign: '<' | '>', orEqual: '=' | '' = ''): string {
  return `event_hour ${sign}= {${place}_hour: UInt32}
  AND (event_hour ${sign} {${place}_hour: UInt32} OR UUIDToNum(event_id) ${sign}${orEqual} UUIDToNum({${place}_id: UUID}))`;
}

/** FINAL would hide replaced payloads. This query reads every payload that merges have not removed. */
const PAYLOADS = `
SELECT DISTINCT${COLUMNS}
FROM usage_events
WHERE account_id = {account_id: String}
  AND (event_hour, UUIDToNum(event_id)) IN
  (
    SELECT tupleElement(place, 1), UUIDToNum(tupleElement(place, 2))
    FROM (SELECT arrayJoin({places: Array(Tuple(DateTime('UTC'), UUID))}) AS place)
  )
ORDER BY event_hour, UUIDToNum(event_id), row_version DESC
LIMIT {longest: UInt32} BY event_hour, event_id
LIMIT {payloads: UInt32}`;

export interface EventListPage {
  readonly events: readonly ListedEvent[];
  readonly next: EventPlace | undefined;
}

/**
 * Reads one page of matching events. A page that reaches one of the limits may have fewer than `limit` events, or none. The next page
 * starts after `next`, which is undefined on the last page.
 * @returns undefined if the list is ordered by cost and the window has too many rows, because each page sorts all of them
 */
export async function readEventList(
  warehouse: Warehouse,
  query: EventListQuery,
  limits: EventListLimits = EVENT_LIST_LIMITS,
): Promise<EventListPage | undefined> {
  const isByCost = query.orderBy === 'cost';
  const rows = isByCost
    ? lastPlaceStatement({ ...query, after: undefined }, limits.sorted)
    : lastPlaceStatement(query, limits.examined);
  const [last] = await warehouse.read(rows, storedPlace);
  if (isByCost && last) return undefined;
  const oneMore = { ...query, limit: query.limit + 1 };
  const found = await warehouse.read(eventListStatement(oneMore, last), storedPayload);
  const newest = found.slice(0, query.limit);
  if (newest.length === 0) return { events: [], next: last };
  const events = withinLimits(await withHistories(warehouse, query.accountId, newest, limits), limits);
  const shown = events.at(-1)?.newest;
  if (!shown || events.length === found.length) return { events, next: last };
  return { events, next: { ...placeOf(shown), ...(isByCost && { cost: shown.cost }) } };
}

/** Adds to each event the payloads that it replaced. If there are too many, drops the second half of the events, repeatedly if needed. */
async function withHistories(
  warehouse: Warehouse,
  accountId: string,
  newest: readonly StoredPayload[],
  limits: EventListLimits,
): Promise<ListedEvent[]> {
  const places = newest.map((payload) => placeOf(payload));
  // Above the number of payloads of a single event, so that the halving below ends.
  const most = Math.max(limits.payloads, LONGEST_HISTORY + 2);
  const payloads = await warehouse.read(
    {
      name: 'read_event_payloads',
      query: PAYLOADS,
      query_params: {
        account_id: accountId,
        places: places.map(({ hour, eventId }) => new TupleParam([dateTime(hour), eventId])),
        longest: LONGEST_HISTORY + 1,
        payloads: most,
      },
    },
    storedPayload,
  );
  if (payloads.length === most) {
    return withHistories(warehouse, accountId, newest.slice(0, Math.floor(newest.length / 2)), limits);
  }
  const byEvent = new Map<string, StoredPayload[]>();
  for (const payload of payloads) byEvent.set(keyOf(payload), [...(byEvent.get(keyOf(payload)) ?? []), payload]);
  return newest.map((payload) => {
    const version = BigInt(payload.version);
    // Skip payloads that arrived between the two statements.
    const replaced = (byEvent.get(keyOf(payload)) ?? []).filter((other) => BigInt(other.version) < version);
    return { newest: payload, replaced: replaced.slice(0, LONGEST_HISTORY) };
  });
}

function withinLimits(events: readonly ListedEvent[], { textLength }: EventListLimits): readonly ListedEvent[] {
  let length = 0;
  const end = events.findIndex(({ newest, replaced }, index) => {
    length += [newest, ...replaced].reduce((sum, payload) => sum + textLengthOf(payload), 0);
    return index > 0 && length > textLength;
  });
  return end === -1 ? events : events.slice(0, end);
}

function textLengthOf({ workspace, resource_name: name, resource_uuid: uuid }: StoredPayload): number {
  return workspace.length + name.length + uuid.length;
}

export function placeOf({ at, id }: Pick<StoredPayload, 'at' | 'id'>): EventPlace {
  return { hour: at - (at % MS_PER_HOUR), eventId: id };
}

function keyOf(payload: StoredPayload): string {
  const { hour, eventId } = placeOf(payload);
  return `${hour} ${eventId}`;
}
