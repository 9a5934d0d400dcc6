/** What becomes of each event of a request: it is checked as the ingest worker will, and gets in place what is missing. */
import { setImmediate as nextTurn } from 'node:timers/promises';
import {
  type EpochMs,
  isName,
  isRecord,
  isUuid,
  type PriceBook,
  parsePricedEvent,
  REJECTION_REASONS,
} from '@meterline/catalog';
import { z } from 'zod';
import { CLOUD_EVENT_REASON, eventIdOf, Unreadable } from './cloud-events.js';

/** What is said of one event. */
export const resultSchema = z.object({
  index: z.int().min(0).meta({ description: 'The place of the event in the request, from 0 on.' }),
  eventId: z.string().optional().meta({ description: 'As it is kept. Of a rejected event, as far as it is known.' }),
  status: z.enum(['accepted', 'rejected']),
  reason: z
    .enum([...REJECTION_REASONS, CLOUD_EVENT_REASON])
    .optional()
    .meta({ description: 'Of a rejected event: a stable code, that of the ingest worker.' }),
  message: z.string().optional().meta({ description: 'Of a rejected event: what is wrong with it.' }),
});

export interface CheckedEvents {
  /** Each with its account, and with a UUID. */
  readonly accepted: readonly object[];
  /** One for each event. */
  readonly results: readonly z.output<typeof resultSchema>[];
}

export interface CheckRules {
  /** In the path of the request. */
  readonly account: string;
  readonly book: PriceBook;
  readonly now: EpochMs;
}

/** Other requests go on after so long. */
const TURN_MS = 2;

/** @param events as `readEvents` gives them. A rejected one never spoils its neighbours. @throws what reading them does */
export async function checkEvents(events: Iterable<unknown>, rules: CheckRules): Promise<CheckedEvents> {
  const accepted: object[] = [];
  const results: z.output<typeof resultSchema>[] = [];
  let turnBegan = performance.now();
  for (const event of events) {
    const index = results.length;
    if (performance.now() - turnBegan > TURN_MS) {
      await nextTurn();
      turnBegan = performance.now();
    }
    const rejection = event instanceof Unreadable ? event : completeAndCheck(event, rules);
    const eventId = knownId(event);
    if (rejection) {
      const { reason, message } = rejection;
      results.push({ index, ...(eventId !== undefined && { eventId }), status: 'rejected', reason, message });
    } else if (isRecord(event) && eventId !== undefined) {
      accepted.push(event);
      results.push({ index, eventId, status: 'accepted' });
    }
  }
  return { accepted, results };
}

/** Gives it the account of the path, if it names none, and a UUID in place of an id that is another text. */
function complete(event: Record<string, unknown>, account: string): void {
  const { eventId } = event;
  if (event['accountId'] === undefined) event['accountId'] = account;
  if (typeof eventId === 'string') event['eventId'] = uuidOf(eventId, account);
}

function uuidOf(id: string, account: string): string {
  if (isUuid(id)) return id.toLowerCase();
  // What is not even a name is rejected as it is.
  return isName(id) ? eventIdOf(account, id) : id;
}

/** @returns why the event is rejected, if it is */
function completeAndCheck(event: unknown, { account, book, now }: CheckRules) {
  if (isRecord(event)) {
    complete(event, account);
    if (event['accountId'] !== account) return foreign(account);
  }
  const checked = parsePricedEvent(event, book, now);
  return checked.ok ? undefined : checked;
}

/** A caller may send events of the account in the path, and of no other. */
function foreign(account: string) {
  const message = `accountId must be ${JSON.stringify(account)}, the account in the path of the request, or be left out`;
  return { reason: 'invalid_account_id', message } as const;
}

/** Not the text of an id that no event can have: it may be of any length. */
function knownId(event: unknown): string | undefined {
  const eventId = isRecord(event) ? event['eventId'] : undefined;
  return typeof eventId === 'string' && isName(eventId) ? eventId : undefined;
}
