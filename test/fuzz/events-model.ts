/** What the collector must answer to a body, worked out without the product's code, from the rules of a single event. */
import { isRecord, MOST_EVENTS, nameOf, parsed, understand } from '../model/event-rules.js';

const UUID = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i;
/** Stands for the UUID that another id becomes: the rules look at no more than its form. */
const ANY_UUID = '00000000-0000-5000-8000-000000000000';

/** Of an event, and so of a body that is no array and holds none. */
const MOST_VALUES = 256;

export type BodyFormat = 'application/json' | 'application/x-ndjson';

export interface Expected {
  /** Of each event, in order. */
  readonly areAccepted: readonly boolean[];
  /** The accepted ones, as a job holds them; without an id where it becomes another one. */
  readonly events: readonly Readonly<Record<string, unknown>>[];
}

/** @returns undefined where the body as a whole must be refused */
export function expectedOf(text: string, format: BodyFormat, account: string, now: number): Expected | undefined {
  const sent = format === 'application/json' ? eventsIn(text) : linesIn(text).map(parsed);
  if (!sent || sent.length === 0 || sent.length > MOST_EVENTS) return undefined;
  const completed = sent.map((event) => completedFor(event, account));
  const areAccepted = completed.map(
    (event) => event?.['accountId'] === account && understand(withUuid(event), now) !== undefined,
  );
  const events = completed.flatMap((event, index) => (event && areAccepted[index] ? [event] : []));
  return { areAccepted, events: events.map(withoutOtherId) };
}

function linesIn(text: string): readonly string[] {
  return text.split('\n').filter((line) => line.trim() !== '');
}

function eventsIn(text: string): readonly unknown[] | undefined {
  const value = parsed(text);
  if (Array.isArray(value)) return value;
  if (!isRecord(value)) return undefined;
  if (!Object.hasOwn(value, 'events')) return valuesIn(text) > MOST_VALUES ? undefined : [value];
  const { events } = value;
  return Object.keys(value).length === 1 && Array.isArray(events) ? events : undefined;
}

/** All but the first, which neither follows a comma nor stands in anything. */
function valuesIn(text: string): number {
  return text.replaceAll(/"(?:[^"\\]|\\.)*"/gs, '').match(/[,[{]/g)?.length ?? 0;
}

function completedFor(event: unknown, account: string): Record<string, unknown> | undefined {
  if (!isRecord(event)) return undefined;
  return Object.hasOwn(event, 'accountId') ? event : { ...event, accountId: account };
}

function withUuid(event: Record<string, unknown>): Record<string, unknown> {
  const { eventId } = event;
  return typeof eventId === 'string' && !UUID.test(eventId) && nameOf(eventId) !== undefined
    ? { ...event, eventId: ANY_UUID }
    : event;
}

function withoutOtherId({ eventId, ...event }: Record<string, unknown>): Record<string, unknown> {
  return typeof eventId === 'string' && UUID.test(eventId) ? { ...event, eventId: eventId.toLowerCase() } : event;
}
