/** What becomes of each event of a request: it is checked as the ingest worker will, and gets in place what is missing. */
import { setImmediate as nextTurn } from 'node:timers/promises';
import {
  blankEvent,
  type EpochMs,
  type EventBeingRead,
  isName,
  isRecord,
  isUuid,
  type PriceBook,
  readPricedEvent,
} from '@meterline/catalog';
import { type Reason, Unreadable } from './cloud-events.js';
import { eventIdOf } from './event-ids.js';

/** What is said of one event. */
interface Result {
  /** The place of the event in the request. */
  readonly index: number;
  /** Of an event that is not accepted: as far as it is known. */
  readonly eventId?: string;
  readonly status: 'accepted' | 'rejected';
  readonly reason?: Reason;
  readonly message?: string;
}

export interface CheckedEvents {
  /** Each with its account, and with a UUID. */
  readonly accepted: readonly object[];
  /** One for each event. */
  readonly results: readonly Result[];
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
  const results: Result[] = [];
  const into = blankEvent();
  let turnBegan = performance.now();
  for (const event of events) {
    const index = results.length;
    if (performance.now() - turnBegan > TURN_MS) {
      await nextTurn();
      turnBegan = performance.now();
    }
    const rejection = event instanceof Unreadable ? event : completeAndCheck(event, rules, into);
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
function completeAndCheck(event: unknown, { account, book, now }: CheckRules, into: EventBeingRead) {
  if (isRecord(event)) {
    complete(event, account);
    if (event['accountId'] !== account) return foreign(account);
  }
  const checked = readPricedEvent(event, book, now, into);
  return 'reason' in checked ? checked : undefined;
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
