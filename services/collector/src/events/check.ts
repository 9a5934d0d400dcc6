/** What becomes of each event of a request. Pure. */
import {
  type Checked,
  type EpochMs,
  type EventAndPrice,
  isName,
  isUuid,
  type PriceBook,
  parsePricedEvent,
  rejected,
} from '@meterline/catalog';
import { eventIdOf } from './event-ids.js';
import type { Found } from './formats.js';
import { CLOUD_EVENT_REASON, Results } from './results.js';
import { isUsualEvent } from './usual-event.js';

/** Events in JSON, as the data of a job has them. */
export interface JobEvents {
  /** One after the other these are the events, with commas between them. */
  readonly parts: readonly Buffer[];
  readonly count: number;
}

const COMMA = Buffer.from(',');

export interface CheckRules {
  /** In the path of the request. */
  readonly account: string;
  readonly book: PriceBook;
  readonly now: EpochMs;
}

/** Checks each event as the ingest worker will. A refused one never spoils its neighbours. */
export class CheckedEvents {
  readonly results = new Results();
  readonly #accepted: Buffer[] = [];
  #count = 0;

  /** Each with its account, and with a UUID. */
  get accepted(): JobEvents {
    return { parts: this.#accepted, count: this.#count };
  }

  /** @param parts in JSON, one event after the other or several with commas between them; they are kept, not copied */
  addAccepted(count: number, ...parts: readonly Buffer[]): void {
    if (this.#count > 0) this.#accepted.push(COMMA);
    this.#accepted.push(...parts);
    this.#count += count;
  }

  add(found: readonly Found[], rules: CheckRules): void {
    for (const item of found) {
      if (item.ok) this.#addEvent(completed(item.event, rules.account), rules);
      else this.results.addRefused({ reason: CLOUD_EVENT_REASON, message: item.message });
    }
  }

  #addEvent(event: unknown, rules: CheckRules): void {
    const isUsual = isRecord(event) && isUsualEvent(event, rules);
    const checked = isUsual ? undefined : check(event, rules);
    if (checked?.ok === false) {
      const { reason, message } = checked;
      const eventId = knownId(event);
      this.results.addRefused({ ...(eventId !== undefined && { eventId }), reason, message });
      return;
    }
    this.addAccepted(1, Buffer.from(JSON.stringify(event)));
    const eventId = isUsual ? event.eventId : checked?.value.event.eventId;
    this.results.addAccepted(Buffer.from(eventId ?? ''), 0);
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
