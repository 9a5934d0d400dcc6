/** The events behind a response, as they count now, and what they have replaced. */

import { TupleParam } from '@clickhouse/client';
import { type EpochMs, MS_PER_HOUR } from '@meterline/catalog';
import { z } from 'zod';
import type { Statement, Warehouse } from '../clickhouse/connection.js';
import { dateTime } from '../rollups/sources.js';
import { eventsOfSpan, filtersOf, type Selection, selectionParameters, withEvents } from './plan.js';
import { decimal } from './read.js';

/** The place of an event in the table's own order, which is the order of the list. */
export interface EventPlace {
  /** UTC hour, in epoch milliseconds. */
  readonly hour: EpochMs;
  readonly eventId: string;
}

export interface EventListQuery extends Omit<Selection, 'accounts'> {
  readonly accountId: string;
  readonly includesVoided: boolean;
  /** Undefined: from the first event on. */
  readonly after: EventPlace | undefined;
  readonly limit: number;
}

/** What one page may cost, whatever the account has and however few events the filters select. */
export interface EventListLimits {
  /** Rows of the account that are looked through. */
  readonly examined: number;
  /** Events with what they replaced: rows that are read to be shown. */
  readonly payloads: number;
  /** The length of the texts that are shown, in UTF-16 code units. */
  readonly textLength: number;
}

export const EVENT_LIST_LIMITS: EventListLimits = { examined: 250_000, payloads: 4_000, textLength: 500_000 };

/** The most earlier payloads of an event that are read. */
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
  /** Payloads that {@link newest} replaced and merges have not removed yet, the newest first. */
  readonly replaced: readonly StoredPayload[];
}

/**
 * The place where a page stops looking, so many rows after its beginning: it knows nothing of filters, and reads the table's
 * key alone, from the hour of the window's start.
 */
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

/**
 * The events that are selected, each as it counts now, in the order of the table's key, which no revision can change: an event keeps its
 * hour and its id.
 * @param last where to stop, that place included; undefined: nowhere
 */
export function eventListStatement(wanted: EventListQuery, last?: EventPlace): Statement {
  const accounts = [wanted.accountId];
  const { includesVoided, after, limit } = wanted;
  const { startTime: from, endTime: to } = withEvents(wanted.window);
  const conditions = [
    ...eventsOfSpan(accounts, { from, to }, 0),
    ...filtersOf(wanted).map(({ condition }) => condition),
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
      ...selectionParameters({ ...wanted, accounts }, [{ from, to }]),
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

/** Rows without FINAL: whatever merges have left of the events. */
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
 * The events that are selected, by UTC hour and then by id: at most `limit`, and fewer, perhaps none, on a page that has come to
 * one of the limits. It looks through `examined` rows from its place on, in the table's own order, and stops there.
 * @returns next: where the next page begins; undefined: this is the last
 */
export async function readEventList(
  warehouse: Warehouse,
  wanted: EventListQuery,
  limits: EventListLimits = EVENT_LIST_LIMITS,
): Promise<{ readonly events: readonly ListedEvent[]; readonly next: EventPlace | undefined }> {
  const [last] = await warehouse.read(lastPlaceStatement(wanted, limits.examined), storedPlace);
  const oneMore = { ...wanted, limit: wanted.limit + 1 };
  const found = await warehouse.read(eventListStatement(oneMore, last), storedPayload);
  const newest = found.slice(0, wanted.limit);
  if (newest.length === 0) return { events: [], next: last };
  const events = withinLimits(await withHistories(warehouse, wanted.accountId, newest, limits), limits);
  const shown = events.at(-1)?.newest;
  const isWhole = events.length === found.length;
  return { events, next: isWhole || !shown ? last : placeOf(shown) };
}

/** The events whose histories could be read as well: the first ones, and at least one. */
async function withHistories(
  warehouse: Warehouse,
  accountId: string,
  newest: readonly StoredPayload[],
  limits: EventListLimits,
): Promise<ListedEvent[]> {
  const places = newest.map((payload) => placeOf(payload));
  // A single event has fewer payloads than this.
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
  // The history of the last one may go on.
  const cut = payloads[most - 1];
  const end = cut ? newest.findIndex((payload) => keyOf(payload) === keyOf(cut)) : newest.length;
  return newest.slice(0, end).map((payload) => {
    const version = BigInt(payload.version);
    // A payload that arrived between the two statements is no history of the one that is shown.
    const replaced = (byEvent.get(keyOf(payload)) ?? []).filter((other) => BigInt(other.version) < version);
    return { newest: payload, replaced: replaced.slice(0, LONGEST_HISTORY) };
  });
}

/** The first events with so much text, and at least one. */
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
