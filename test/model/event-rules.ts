/** Which events are accepted, and what is stored for them. Source: DESIGN section 3, rule by rule. */
import { instantOf } from '../oracle/calendar.js';
import { decimalOf, decimalOfPrinted, isWhole, roundHalfEven } from '../oracle/exact.js';
import { DIMENSIONS, USAGE_DECIMALS } from '../oracle/prices.js';

/** An event with the fields that a producer may send. */
export interface OracleEvent {
  readonly eventId: string;
  readonly accountId: string;
  readonly workspace: string;
  readonly resourceType: string;
  readonly resourceName: string;
  readonly resourceUuid?: string | null;
  readonly billingDimension: string;
  readonly usage: number | string;
  readonly timestamp: string;
  readonly revision?: number;
  readonly void?: boolean;
}

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

const FIELDS = [
  'eventId',
  'accountId',
  'workspace',
  'resourceType',
  'resourceName',
  'resourceUuid',
  'billingDimension',
  'usage',
  'timestamp',
  'revision',
  'void',
];
const TEN_MINUTES = 600_000;
const USAGE_LIMIT = 10n ** 15n;

/** Undefined when the event is refused. @param now when the worker takes the event from the queue */
export function understand(event: unknown, now: number): UnderstoodEvent | undefined {
  if (!isRecord(event)) return undefined;
  const fields = new Map<string, unknown>(Object.entries(event).filter(([, value]) => value !== undefined));
  if ([...fields.keys()].some((name) => !FIELDS.includes(name))) return undefined;

  const eventId = fields.get('eventId');
  const accountId = nameOf(fields.get('accountId'));
  const workspace = nameOf(fields.get('workspace'));
  const resourceName = nameOf(fields.get('resourceName'));
  const uuid = fields.get('resourceUuid') ?? '';
  const resourceUuid = uuid === '' ? '' : nameOf(uuid);
  const billingDimension = fields.get('billingDimension');
  const timestamp = timestampOf(fields.get('timestamp'), now);
  const revision = fields.has('revision') ? fields.get('revision') : 0;
  const voided = fields.has('void') ? fields.get('void') : false;

  // `toString` is no dimension, though every object has one.
  if (typeof billingDimension !== 'string' || !Object.hasOwn(DIMENSIONS, billingDimension)) return undefined;
  const dimension = DIMENSIONS[billingDimension];
  if (!dimension) return undefined;
  const { resourceType, counts } = dimension;
  const usage = usageOf(fields.get('usage'), counts);
  if (resourceType !== fields.get('resourceType')) return undefined;
  if (typeof eventId !== 'string' || !isUuid(eventId)) return undefined;
  if (typeof revision !== 'number' || !Number.isInteger(revision) || revision < 0 || revision > 65_535)
    return undefined;
  if (typeof voided !== 'boolean' || usage === undefined || timestamp === undefined) return undefined;
  if (!accountId || !workspace || !resourceName || resourceUuid === undefined) return undefined;

  const payload = { workspace, resourceType, resourceName, resourceUuid, billingDimension, usage, timestamp, voided };
  return { accountId, eventId: eventId.toLowerCase(), revision, payload };
}

function isUuid(text: string): boolean {
  const parts = text.toLowerCase().split('-');
  const lengths = parts.map((part) => (/^[0-9a-f]+$/.test(part) ? part.length : 0));
  return lengths.join() === '8,4,4,4,12';
}

/** 1 to 256 code points, none of them a control character or half of a pair. */
export function nameOf(value: unknown): string | undefined {
  if (typeof value !== 'string') return undefined;
  const codePoints = Array.from(value, (character) => character.codePointAt(0) ?? 0);
  const isAllowed = (code: number) => code >= 0x20 && (code < 0x7f || code > 0x9f) && (code < 0xd800 || code > 0xdfff);
  return codePoints.length >= 1 && codePoints.length <= 256 && codePoints.every(isAllowed) ? value : undefined;
}

function timestampOf(value: unknown, now: number): number | undefined {
  const instant = typeof value === 'string' ? instantOf(value) : undefined;
  return instant !== undefined && instant >= 0 && instant <= now + TEN_MINUTES ? instant : undefined;
}

/** × 10^9. The limit and the rule for counts apply to the value as sent, before it is rounded. */
function usageOf(value: unknown, counts: boolean): bigint | undefined {
  const number = typeof value === 'number' ? decimalOfPrinted(value) : undefined;
  const sent = typeof value === 'string' ? decimalOf(value) : number;
  if (!sent || sent.numerator >= USAGE_LIMIT * sent.denominator) return undefined;
  if (counts && !isWhole(sent)) return undefined;
  return roundHalfEven(sent, USAGE_DECIMALS);
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
