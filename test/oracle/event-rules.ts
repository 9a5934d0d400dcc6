/** Which events are accepted, and what is stored for them. Source: DESIGN section 3, rule by rule. */
import { z } from 'zod';
import { instantOf } from './calendar.js';
import { decimalOf, decimalOfPrinted, isWhole, roundHalfEven } from './exact.js';
import { DIMENSIONS, USAGE_DECIMALS } from './prices.js';

/** The part of an event that a revision may change. */
export interface Payload {
  readonly workspace: string;
  readonly resourceType: string;
  readonly resourceName: string;
  readonly resourceUuid: string;
  readonly billingDimension: string;
  /** × 10^9 */
  readonly usage: bigint;
  /** Epoch milliseconds. */
  readonly timestamp: number;
  readonly voided: boolean;
}

export interface UnderstoodEvent {
  readonly accountId: string;
  readonly eventId: string;
  readonly revision: number;
  readonly payload: Payload;
}

/** In a job, or a request to the collector. */
export const MOST_EVENTS = 5_000;
const TEN_MINUTES = 600_000;
const USAGE_LIMIT = 10n ** 15n;

const name = z.string().refine(isName);
const fields = z.strictObject({
  eventId: z.string().regex(/^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i),
  accountId: name,
  workspace: name,
  resourceType: z.string(),
  resourceName: name,
  resourceUuid: z.literal('').or(name).nullish(),
  // Not an object's keys: `toString` is no dimension, though every object has one.
  billingDimension: z.enum(Object.keys(DIMENSIONS)),
  usage: z.string().or(z.number()),
  timestamp: z.string(),
  revision: z.int().min(0).max(65_535).default(0),
  void: z.boolean().default(false),
});

/** Undefined when the event is refused. @param now when the worker takes the event from the queue */
export function understand(event: unknown, now: number): UnderstoodEvent | undefined {
  const { data } = fields.safeParse(event);
  if (!data) return undefined;
  const { accountId, eventId, revision, void: voided, ...sent } = data;
  const dimension = DIMENSIONS[sent.billingDimension];
  const usage = usageOf(sent.usage, dimension?.counts === true);
  const timestamp = instantOf(sent.timestamp);
  if (dimension?.resourceType !== sent.resourceType || usage === undefined || timestamp === undefined) return undefined;
  if (timestamp < 0 || timestamp > now + TEN_MINUTES) return undefined;
  const payload = { ...sent, resourceUuid: sent.resourceUuid ?? '', usage, timestamp, voided };
  return { accountId, eventId: eventId.toLowerCase(), revision, payload };
}

/** 1 to 256 code points, none of them a control character or half of a pair. */
export function isName(text: string): boolean {
  const codePoints = Array.from(text, (character) => character.codePointAt(0) ?? 0);
  const isAllowed = (code: number) => code >= 0x20 && (code < 0x7f || code > 0x9f) && (code < 0xd800 || code > 0xdfff);
  return codePoints.length >= 1 && codePoints.length <= 256 && codePoints.every(isAllowed);
}

/** × 10^9. The limit and the rule for counts apply to the value as sent, before it is rounded. */
function usageOf(value: number | string, counts: boolean): bigint | undefined {
  const sent = typeof value === 'string' ? decimalOf(value) : decimalOfPrinted(value);
  if (!sent || sent.numerator >= USAGE_LIMIT * sent.denominator) return undefined;
  return counts && !isWhole(sent) ? undefined : roundHalfEven(sent, USAGE_DECIMALS);
}

/** The events of a job's data; undefined for a job that is rejected whole. */
export function eventsOfJob(data: unknown): readonly unknown[] | undefined {
  if (!isRecord(data)) return undefined;
  if (!Object.hasOwn(data, 'events')) return [data];
  const { events } = data;
  if (Object.keys(data).length > 1 || !Array.isArray(events)) return undefined;
  return events.length >= 1 && events.length <= MOST_EVENTS ? events : undefined;
}

/** Undefined for what is no JSON. */
export function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

export function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
