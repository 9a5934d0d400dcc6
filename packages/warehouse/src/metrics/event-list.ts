/** The events behind an answer, as they count now, and what they have replaced. */
import { type EpochMs, MS_PER_HOUR } from '@meterline/catalog';
import { z } from 'zod';
import type { Statement, Warehouse } from '../clickhouse/connection.js';
import { Tuple } from '../clickhouse/warehouse.js';
import { dateTime } from '../rollups/sources.js';
import { eventsOfSpan, filtersOf, type Selection, selectionParameters, withEvents } from './plan.js';
import { decimal } from './read.js';

/** The place of an event in the table's own order, which is the order of the list. */
export interface EventPlace {
  /** UTC hour, in epoch milliseconds. */
  readonly hour: EpochMs;
  readonly eventId: string;
}

export interface EventListQuestion extends Selection {
  readonly includesVoided: boolean;
  /** Undefined: from the first event on. */
  readonly after: EventPlace | undefined;
  readonly limit: number;
}

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

const storedPayload = z.object({
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
  /** Those that {@link newest} replaced and merges have not removed yet, the newest first. */
  readonly replaced: readonly StoredPayload[];
}

/** Reads in the table's own order from the place on, so a page costs what it shows, or what the filters pass over. */
function eventListStatement(question: EventListQuestion): Statement {
  const { includesVoided, after, limit } = question;
  const { startTime: from, endTime: to } = withEvents(question.window);
  const conditions = [
    ...eventsOfSpan({ from, to }, 0),
    ...filtersOf(question).map(({ condition }) => condition),
    ...(includesVoided ? [] : ['NOT voided']),
    ...(after ? [AFTER] : []),
  ];
  return {
    name: 'read_event_list',
    query: `
SELECT${COLUMNS}
FROM usage_events FINAL
WHERE ${conditions.join('\n  AND ')}
ORDER BY event_hour, event_id
LIMIT {limit: UInt32}`,
    query_params: {
      ...selectionParameters(question, [{ from, to }]),
      limit: limit + 1,
      ...(after && { after_hour: after.hour / 1000, after_id: after.eventId }),
    },
  };
}

const AFTER = `event_hour >= {after_hour: UInt32}
  AND (event_hour > {after_hour: UInt32} OR event_id > {after_id: UUID})`;

/** Rows without FINAL: whatever merges have left of the events. */
const PAYLOADS = `
SELECT DISTINCT${COLUMNS}
FROM usage_events
WHERE account_id = {account_id: String}
  AND (event_hour, event_id) IN {places: Array(Tuple(DateTime('UTC'), UUID))}
ORDER BY event_hour, event_id, row_version DESC
LIMIT {longest: UInt32} BY event_hour, event_id`;

/** The events that are selected, by UTC hour and then by id, at most `limit` of them, and whether there are more. */
export async function readEventList(
  warehouse: Warehouse,
  question: EventListQuestion,
): Promise<{ readonly events: readonly ListedEvent[]; readonly hasMore: boolean }> {
  const found = await warehouse.read(eventListStatement(question), storedPayload);
  const newest = found.slice(0, question.limit);
  if (newest.length === 0) return { events: [], hasMore: false };
  const places = newest.map((payload) => placeOf(payload));
  const payloads = await warehouse.read(
    {
      name: 'read_event_payloads',
      query: PAYLOADS,
      query_params: {
        account_id: question.accountId,
        places: places.map(({ hour, eventId }) => new Tuple([dateTime(hour), eventId])),
        longest: LONGEST_HISTORY + 1,
      },
    },
    storedPayload,
  );
  const byEvent = new Map<string, StoredPayload[]>();
  for (const payload of payloads) byEvent.set(keyOf(payload), [...(byEvent.get(keyOf(payload)) ?? []), payload]);
  const events = newest.map((payload) => {
    const version = BigInt(payload.version);
    // One that arrived between the two statements is no history of the one that is shown.
    const replaced = (byEvent.get(keyOf(payload)) ?? []).filter((other) => BigInt(other.version) < version);
    return { newest: payload, replaced: replaced.slice(0, LONGEST_HISTORY) };
  });
  return { events, hasMore: found.length > newest.length };
}

export function placeOf({ at, id }: Pick<StoredPayload, 'at' | 'id'>): EventPlace {
  return { hour: at - (at % MS_PER_HOUR), eventId: id };
}

function keyOf(payload: StoredPayload): string {
  const { hour, eventId } = placeOf(payload);
  return `${hour} ${eventId}`;
}
