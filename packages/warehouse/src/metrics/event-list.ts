/** Reads the events that a metrics response was computed from: the current payload of each event, and the payloads that it replaced. */

import { TupleParam } from '@clickhouse/client';
import { type EpochMs, MS_PER_HOUR } from '@meterline/catalog';
import { z } from 'zod';
import type { Statement, Warehouse } from '../clickhouse/connection.js';
import { dateTime } from '../rollups/sources.js';
import { eventsOfSpan, filtersOf, type Selection, selectionParameters, withEvents } from './plan.js';
import { decimal } from './read.js';

/** The position of an event in the sort order of the table and of the list. */
export interface EventPlace {
  readonly hour: EpochMs;
  readonly eventId: string;
}

export interface EventListQuery extends Omit<Selection, 'accounts'> {
  readonly accountId: string;
  readonly includesVoided: boolean;
  readonly after: EventPlace | undefined;
  readonly limit: number;
}

/** Limits the cost of one page, no matter how many events the account has or how few of them match the filters. */
export interface EventListLimits {
  /** Maximum number of rows of the account that ClickHouse examines. */
  readonly examined: number;
  readonly payloads: number;
  /** Maximum total length of all returned strings, in UTF-16 code units. */
  readonly textLength: number;
}

export const EVENT_LIST_LIMITS: EventListLimits = { examined: 250_000, payloads: 4_000, textLength: 500_000 };

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

/** Selects the position `examined` rows after the page's start, regardless of the filters. Reads only key columns. */
function lastPlaceStatement({ accountId, window, after }: EventListQuery, examined: number): Statement {
  const { startTime, endTime } = withEvents(window);
  return {
    name: 'read_event_list_end',
    query: `
SELECT toUnixTimestamp(event_hour) AS hour, toString(event_id) AS id
FROM usage_events
WHERE account_id = {account_id: String}
  AND event_hour >= {from_hour: UInt32}
  AND event_hour < {to_hour: UInt32}${after ? `\n  AND ${AFTER}` : ''}
ORDER BY event_hour, UUIDToNum(event_id)
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

/** Selects the current payload of each matching event up to `last`, in key order. A revision never changes an event's position. */
export function eventListStatement(query: EventListQuery, last?: EventPlace): Statement {
  const accounts = [query.accountId];
  const { includesVoided, after, limit } = query;
  const { startTime: from, endTime: to } = withEvents(query.window);
  const conditions = [
    ...eventsOfSpan(accounts, { from, to }, 0),
    ...filtersOf(query).map(({ condition }) => condition),
    ...(includesVoided ? [] : ['NOT voided']),
    ...(after ? [AFTER] : []),
    ...(last ? [UP_TO] : []),
  ];
  return {
    name: 'read_event_list',
    query: `
SELECT${COLUMNS}
FROM usage_events FINAL
WHERE ${conditions.join('\n  AND ')}
ORDER BY event_hour, UUIDToNum(event_id)
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
  return after ? { after_hour: after.hour / 1000, after_id: after.eventId } : {};
}

const AFTER = `event_hour >= {after_hour: UInt32}
  AND (event_hour > {after_hour: UInt32} OR UUIDToNum(event_id) > UUIDToNum({after_id: UUID}))`;
const UP_TO = `event_hour <= {last_hour: UInt32}
  AND (event_hour < {last_hour: UInt32} OR UUIDToNum(event_id) <= UUIDToNum({last_id: UUID}))`;

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

/**
 * Reads one page of matching events, ordered by UTC hour and then by ID. A page that reaches one of the limits may have fewer than `limit`
 * events, or none. The next page starts after `next`, which is undefined on the last page.
 */
export async function readEventList(
  warehouse: Warehouse,
  query: EventListQuery,
  limits: EventListLimits = EVENT_LIST_LIMITS,
): Promise<{ readonly events: readonly ListedEvent[]; readonly next: EventPlace | undefined }> {
  const [last] = await warehouse.read(lastPlaceStatement(query, limits.examined), storedPlace);
  const oneMore = { ...query, limit: query.limit + 1 };
  const found = await warehouse.read(eventListStatement(oneMore, last), storedPayload);
  const newest = found.slice(0, query.limit);
  if (newest.length === 0) return { events: [], next: last };
  const events = withinLimits(await withHistories(warehouse, query.accountId, newest, limits), limits);
  const shown = events.at(-1)?.newest;
  const isWhole = events.length === found.length;
  return { events, next: isWhole || !shown ? last : placeOf(shown) };
}

/** Adds the replaced payloads to the events. If there are too many payloads, only the first events are returned, but at least one. */
async function withHistories(
  warehouse: Warehouse,
  accountId: string,
  newest: readonly StoredPayload[],
  limits: EventListLimits,
): Promise<ListedEvent[]> {
  const places = newest.map((payload) => placeOf(payload));
  // Large enough for all payloads of a single event, so that the first event is always complete.
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
  const byEvent = new Map<string, StoredPayload[]>();
  for (const payload of payloads) byEvent.set(keyOf(payload), [...(byEvent.get(keyOf(payload)) ?? []), payload]);
  // If the payloads reached the limit, the last one belongs to an event whose history may be incomplete. The page ends before that event.
  const cut = payloads[most - 1];
  const end = cut ? newest.findIndex((payload) => keyOf(payload) === keyOf(cut)) : newest.length;
  return newest.slice(0, end).map((payload) => {
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
