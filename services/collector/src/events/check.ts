/** What becomes of each event of a request. Pure. */
import {
  type Checked,
  type EpochMs,
  type EventAndPrice,
  isName,
  isUuid,
  type PriceBook,
  parsePricedEvent,
  type RejectionReason,
  rejected,
} from '@meterline/catalog';
import { eventIdOf } from './event-ids.js';
import type { Found } from './formats.js';
import { isUsualEvent } from './usual-event.js';

/** The worker's reasons, and one for what never reaches it. */
export const CLOUD_EVENT_REASON = 'invalid_cloud_event';
export type Reason = RejectionReason | typeof CLOUD_EVENT_REASON;

export type Result =
  | { readonly index: number; readonly eventId: string; readonly status: 'accepted' }
  | {
      readonly index: number;
      /** As far as it is known. */
      readonly eventId?: string;
      readonly status: 'refused';
      readonly reason: Reason;
      readonly message: string;
    };

/** Events as the data of a job has them. */
export interface JobEvents {
  /** With commas between them. */
  readonly json: string;
  readonly count: number;
}

export interface CheckRules {
  /** In the path of the request. */
  readonly account: string;
  readonly book: PriceBook;
  readonly now: EpochMs;
}

/** Checks each event as the ingest worker will. A refused one never spoils its neighbours. */
export class CheckedEvents {
  readonly results: Result[] = [];
  readonly #accepted: string[] = [];
  #count = 0;

  /** As they go into a job: each with its account, and with a UUID. */
  get accepted(): JobEvents {
    return { json: this.#accepted.join(), count: this.#count };
  }

  /** Of an event that was accepted by another check. Its JSON comes with {@link addAccepted}, alone or with others. */
  addResult(eventId: string): void {
    this.results.push({ index: this.results.length, eventId, status: 'accepted' });
  }

  /** @param json of one event, or several with commas between them */
  addAccepted(json: string, count: number): void {
    this.#accepted.push(json);
    this.#count += count;
  }

  add(found: readonly Found[], rules: CheckRules): void {
    for (const item of found) this.results.push(this.#resultOf(item, rules));
  }

  #resultOf(item: Found, rules: CheckRules): Result {
    const index = this.results.length;
    if (!item.ok) return { index, status: 'refused', reason: CLOUD_EVENT_REASON, message: item.message };
    const event = completed(item.event, rules.account);
    if (isRecord(event) && isUsualEvent(event, rules)) {
      this.addAccepted(JSON.stringify(event), 1);
      return { index, eventId: event.eventId, status: 'accepted' };
    }
    const checked = check(event, rules);
    if (checked.ok) {
      this.addAccepted(JSON.stringify(event), 1);
      return { index, eventId: checked.value.event.eventId, status: 'accepted' };
    }
    const { reason, message } = checked;
    const eventId = knownId(event);
    return { index, ...(eventId !== undefined && { eventId }), status: 'refused', reason, message };
  }
}

/** With the account of the path, if it names none, and a UUID in place of an id that is another text. */
function completed(event: unknown, account: string): unknown {
  if (!isRecord(event)) return event;
  const { eventId } = event;
  if (event['accountId'] === undefined) event['accountId'] = account;
  if (typeof eventId === 'string') event['eventId'] = uuidOf(eventId, account);
  return event;
}

function uuidOf(id: string, account: string): string {
  if (isUuid(id)) return id.toLowerCase();
  // What is not even a name is refused as it is.
  return isName(id) ? eventIdOf(account, id) : id;
}

function check(event: unknown, { account, book, now }: CheckRules): Checked<EventAndPrice> {
  if (isRecord(event) && event['accountId'] !== account) return foreign(account);
  return parsePricedEvent(event, book, now);
}

/** A caller may send events of the account that it asks for, and of no other. */
function foreign(account: string) {
  const message = `accountId must be ${JSON.stringify(account)}, the account in the path of the request, or be left out`;
  return rejected('invalid_account_id', message);
}

/** Not the text of an id that no event can have: it may be of any length. */
function knownId(event: unknown): string | undefined {
  const eventId = isRecord(event) ? event['eventId'] : undefined;
  return typeof eventId === 'string' && isName(eventId) ? eventId : undefined;
}

function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
