/**
 * Defines and validates usage events. Source: docs/guides/emitting.md, "An event". The rules do not use zod, because producers and browsers load
 * them. Without zod, they add 2 kB to a bundle instead of 94 kB, and take a third of the time (docs/decisions/0013).
 */

import { type EpochMs, formatTimestamp, parseTimestamp } from './calendar.js';
import { type DecimalDigits, decimalOfNumber, parseDecimalText, toScaled, USAGE_SCALE } from './decimal.js';
import {
  type BillingDimension,
  billingDimensions,
  type Dimension,
  dimensionOf,
  isResourceType,
  type ResourceType,
  resourceTypes,
  type Unit,
  unitOf,
} from './dimensions.js';
import { quoted } from './quoted.js';
import { isRecord } from './record.js';
import { type Checked, type Rejected, type RejectionReason, rejected } from './rejection.js';

export const MAX_NAME_LENGTH = 256;
export const MAX_REVISION = 65_535;
export const MAX_CLOCK_SKEW_MS = 10 * 60_000;
/** Usage is below 10^15, so it has at most 15 integer digits. */
const MAX_USAGE_DIGITS = 15;

/** With the u flag, lengths count code points, and \p{Cs} matches only unpaired surrogates. */
const NAME = /^[^\p{Cc}\p{Cs}]{1,256}$/u;

export interface UsageEventInput {
  eventId: string;
  accountId: string;
  workspace: string;
  resourceType: ResourceType;
  resourceName: string;
  /** Null and the empty string mean that the event has no resource UUID. Many serializers write absent values that way. */
  resourceUuid?: string | null | undefined;
  billingDimension: BillingDimension;
  usage: number | string;
  timestamp: string;
  revision?: number | undefined;
  void?: boolean | undefined;
}

export type UsageEventField = keyof UsageEventInput;

export interface UsageEvent {
  /** A UUID in lowercase. Together with accountId and the UTC hour of the timestamp, it identifies the event. */
  readonly eventId: string;
  readonly accountId: string;
  readonly workspace: string;
  readonly resourceType: ResourceType;
  readonly resourceName: string;
  readonly resourceUuid: string;
  readonly billingDimension: BillingDimension;
  /** In the unit of the billing dimension, scaled by 10^9. */
  readonly usage: bigint;
  readonly timestamp: EpochMs;
  readonly revision: number;
  readonly voided: boolean;
}

/** Caches valid names, because most names repeat and the regular expression is slow. */
const knownNames = /* @__PURE__ */ new Set<string>();
const MAX_KNOWN_NAMES = 10_000;

/** Returns whether the string is a valid name of an account, workspace or resource, or a valid resource UUID. */
export function isName(text: string): boolean {
  if (knownNames.has(text)) return true;
  if (!NAME.test(text)) return false;
  if (knownNames.size === MAX_KNOWN_NAMES) knownNames.clear();
  knownNames.add(text);
  return true;
}

export function isUuid(text: string): boolean {
  lastUuid = readUuid(text, scratch, 0) ? text : undefined;
  return lastUuid !== undefined;
}

/** The UUID that `scratch` holds. An event is stored right after its validation, so this cache avoids parsing its UUID twice. */
let lastUuid: string | undefined;
const scratch = /* @__PURE__ */ new Uint32Array(4);
const DASH = 45;
const NO_DIGIT = 255;
const HEX_DIGITS = /* @__PURE__ */ Uint8Array.from({ length: 128 }, (_, code) => {
  const digit = '0123456789abcdef'.indexOf(String.fromCharCode(code).toLowerCase());
  return digit === -1 ? NO_DIGIT : digit;
});

/**
 * Parses a UUID of any case into the form that ClickHouse stores: two little-endian 64-bit numbers, with the upper one first.
 * @param into receives four words, starting at `at`
 * @returns whether the string is a UUID
 */
export function readUuid(text: string, into: Uint32Array, at: number): boolean {
  if (text === lastUuid && into !== scratch) {
    into.set(scratch, at);
    return true;
  }
  if (text.length !== 36 || text.charCodeAt(8) !== DASH || text.charCodeAt(18) !== DASH) return false;
  const [first, second] = [hexNumber(text, 0), hexNumber(text, 9, 13)];
  const [third, fourth] = [hexNumber(text, 19, 23), hexNumber(text, 28)];
  into[at] = second;
  into[at + 1] = first;
  into[at + 2] = fourth;
  into[at + 3] = third;
  return first >= 0 && second >= 0 && third >= 0 && fourth >= 0;
}

/** Parses eight hexadecimal digits. Returns -1 if there are other characters. @param dash the index of a dash among the digits */
function hexNumber(text: string, from: number, dash = -1): number {
  if (dash !== -1 && text.charCodeAt(dash) !== DASH) return -1;
  const to = dash === -1 ? from + 8 : from + 9;
  let value = 0;
  let all = 0;
  for (let index = from; index < to; index += 1) {
    if (index === dash) continue;
    const digit = HEX_DIGITS[text.charCodeAt(index)] ?? NO_DIGIT;
    all |= digit;
    value = (value << 4) | digit;
  }
  return all === (all & 15) ? value >>> 0 : -1;
}

export function uuidText(words: Uint32Array, at: number): string {
  const hex = (word: number) => (words[at + word] ?? 0).toString(16).padStart(8, '0');
  return `${hex(1)}${hex(0)}${hex(3)}${hex(2)}`.replace(/^(.{8})(.{4})(.{4})(.{4})/, '$1-$2-$3-$4-');
}

/** Looks up the billing dimension of an event. @param resourceType the event's field of this name, which is not validated yet */
type FindDimension = (name: string, resourceType: unknown) => Dimension | undefined;

/**
 * Validates an event. A fast check accepts valid events. Only if it fails, a slower check finds the rules that the event breaks.
 * @param find looks up a dimension (default: among the dimensions that this process knows)
 */
export function parseUsageEvent(input: unknown, now: EpochMs, find: FindDimension = dimensionOf): Checked<UsageEvent> {
  const event = acceptedEvent(input, now, find);
  if (event) return { ok: true, value: event };
  const rejection = rejectionOf(input, now, find);
  if (!rejection) throw new Error('validation rejected the event, but no rule explains why (bug)');
  return rejection;
}

function acceptedEvent(input: unknown, now: EpochMs, find: FindDimension): UsageEvent | undefined {
  if (!isRecord(input)) return undefined;
  const { eventId, accountId, workspace, resourceName, resourceUuid, billingDimension, timestamp } = input;
  const { revision = 0, void: voided = false } = input;
  if (!isEventId(eventId) || !isNameValue(accountId) || !isNameValue(workspace) || !isNameValue(resourceName))
    return undefined;
  if (!isResourceUuid(resourceUuid) || !isText(billingDimension) || !isText(timestamp)) return undefined;
  if (!isRevision(revision) || !isBoolean(voided)) return undefined;
  const dimension = find(billingDimension, input['resourceType']);
  if (!dimension || input['resourceType'] !== dimension.resourceType) return undefined;
  const { resourceType, unit } = dimension;
  const usage = usageOf(input['usage'], unit);
  const instant = parseTimestamp(timestamp);
  if (usage === undefined || instant === undefined || instant < 0 || instant > now + MAX_CLOCK_SKEW_MS)
    return undefined;
  for (const name of Object.keys(input)) if (!isEventField(name)) return undefined;
  return {
    eventId: eventId.toLowerCase(),
    accountId,
    workspace,
    resourceType,
    resourceName,
    resourceUuid: resourceUuid ?? '',
    billingDimension,
    usage,
    timestamp: instant,
    revision,
    voided,
  };
}

/** Returns why {@link acceptedEvent} does not accept an event, or undefined if it does. */
export function rejectionOf(input: unknown, now: EpochMs, find: FindDimension = dimensionOf): Rejected | undefined {
  if (!isRecord(input)) return rejected('event_not_an_object', 'an event must be a JSON object');
  const dimension = isText(input['billingDimension'])
    ? find(input['billingDimension'], input['resourceType'])
    : undefined;
  const broken = brokenRules(input, dimension);
  if (broken) return broken;

  // brokenRules() has checked the type of every field, so the cast is safe.
  const event = input as unknown as UsageEventInput;
  const { billingDimension } = event;
  const { resourceType = '', unit = '' } = dimension ?? {};
  if (event.resourceType !== resourceType) {
    const message = `billingDimension ${billingDimension} belongs to resourceType ${resourceType}, not to ${event.resourceType}`;
    return rejected('dimension_mismatch', message);
  }
  if (usageOf(event.usage, unit) === undefined) return usageRejection(billingDimension, event.usage);
  const timestamp = parseTimestamp(event.timestamp);
  if (timestamp === undefined || timestamp < 0) {
    return rejected('invalid_timestamp', `timestamp ${TIMESTAMP_RULE}${got(event.timestamp)}`);
  }
  if (timestamp > now + MAX_CLOCK_SKEW_MS) {
    const rule = `must not be more than 10 minutes ahead of the clock, which shows ${formatTimestamp(now)}`;
    return rejected('timestamp_in_future', `timestamp ${rule}${got(event.timestamp)}`);
  }
  return undefined;
}

/** Parses usage into a bigint scaled by 10^9, rounded half-even. A dimension that counts events requires a whole number. */
export function parseUsage(dimension: BillingDimension, input: number | string): Checked<bigint> {
  const usage = usageOf(input, unitOf(dimension));
  return usage === undefined ? usageRejection(dimension, input) : { ok: true, value: usage };
}

const WHOLE_USAGE = 10n ** BigInt(USAGE_SCALE);
const MAX_WHOLE_USAGE = 10 ** MAX_USAGE_DIGITS - 1;

function usageOf(value: unknown, unit: Unit): bigint | undefined {
  if (typeof value === 'number' && Number.isInteger(value) && value >= 0 && value <= MAX_WHOLE_USAGE) {
    return BigInt(value) * WHOLE_USAGE;
  }
  // Objects are rejected here, because converting one to a string may throw or run out of stack.
  if (typeof value !== 'number' && typeof value !== 'string') return undefined;
  const digits = digitsOf(value);
  if (!digits || (unit === 'count' && digits.fraction !== '')) return undefined;
  return toScaled(digits, USAGE_SCALE);
}

function digitsOf(value: unknown): DecimalDigits | undefined {
  let digits: DecimalDigits | undefined;
  if (isText(value)) digits = parseDecimalText(value);
  else if (typeof value === 'number' && value >= 0 && Number.isFinite(value)) digits = decimalOfNumber(value);
  return digits && digits.integer.length <= MAX_USAGE_DIGITS ? digits : undefined;
}

const isText = (value: unknown) => typeof value === 'string';
const isBoolean = (value: unknown) => typeof value === 'boolean';
const isNameValue = (value: unknown): value is string => isText(value) && isName(value);
const isEventId = (value: unknown): value is string => isText(value) && isUuid(value);

function isResourceUuid(value: unknown): value is string | null | undefined {
  return value === undefined || value === null || value === '' || isNameValue(value);
}

function isRevision(value: unknown): value is number {
  return typeof value === 'number' && Number.isInteger(value) && value >= 0 && value <= MAX_REVISION;
}

interface FieldRule {
  /** @param dimension the dimension of the event, or undefined if it is unknown */
  readonly holds: (value: unknown, dimension: Dimension | undefined) => boolean;
  /** The part of the message that follows the name of the field. */
  readonly rule: string | (() => string);
  readonly reason: RejectionReason;
}

const USAGE_RULE = 'must be a number or decimal string, at least 0 and below 10^15, without an exponent';
const TIMESTAMP_RULE =
  'must be RFC 3339 in UTC (Z or +00:00), from 1970 on, with at most 9 fraction digits, such as 2025-10-01T00:00:00Z';
const NAME_RULE = `must be a string of 1 to ${MAX_NAME_LENGTH} characters without control characters`;
const field = (reason: RejectionReason, holds: FieldRule['holds'], rule: FieldRule['rule']): FieldRule => ({
  holds,
  rule,
  reason,
});
const name = (reason: RejectionReason) => field(reason, isNameValue, NAME_RULE);

/** The rules for single fields. A rejection lists broken rules in this order. */
const EVENT_FIELDS: Readonly<Record<UsageEventField, FieldRule>> = {
  eventId: field('invalid_event_id', isEventId, 'must be a UUID, such as 0190c5e4-7b1a-7def-8abc-0123456789ab'),
  accountId: name('invalid_account_id'),
  workspace: name('invalid_workspace'),
  resourceType: field(
    'invalid_resource_type',
    (value, dimension) => isText(value) && (value === dimension?.resourceType || isResourceType(value)),
    () => `must be one of ${resourceTypes().join(', ')}`,
  ),
  resourceName: name('invalid_resource_name'),
  resourceUuid: field('invalid_resource_uuid', isResourceUuid, NAME_RULE),
  billingDimension: field(
    'invalid_billing_dimension',
    (_value, dimension) => dimension !== undefined,
    () => `must be one of ${billingDimensions().join(', ')}`,
  ),
  usage: field('invalid_usage', (value) => isText(value) || Number.isFinite(value), USAGE_RULE),
  timestamp: field('invalid_timestamp', isText, TIMESTAMP_RULE),
  revision: field(
    'invalid_revision',
    (value) => value === undefined || isRevision(value),
    `must be an integer from 0 to ${MAX_REVISION}`,
  ),
  void: field('invalid_void', (value) => value === undefined || isBoolean(value), 'must be true or false'),
};
/** The maximum number of unknown fields that a message lists, because an event may have thousands. */
const MAX_NAMED_FIELDS = 10;
const FIELD_RULES = Object.entries(EVENT_FIELDS);

function isEventField(name: string): name is UsageEventField {
  return Object.hasOwn(EVENT_FIELDS, name);
}

/** Returns one rejection for all broken rules, so that the producer can fix them together. Its reason is that of the first broken rule. */
function brokenRules(input: Readonly<Record<string, unknown>>, dimension: Dimension | undefined): Rejected | undefined {
  const broken: Rejected[] = [];
  for (const [field, { holds, rule, reason }] of FIELD_RULES) {
    const value = input[field];
    if (holds(value, dimension)) continue;
    const text = typeof rule === 'string' ? rule : rule();
    broken.push(
      value === undefined
        ? rejected('missing_field', `${field} is missing`)
        : rejected(reason, `${field} ${text}${got(value)}`),
    );
  }
  const names = Object.keys(input);
  if (!names.every(isEventField)) broken.push(unknownFields(names.filter((name) => !isEventField(name))));
  const [first] = broken;
  return first && rejected(first.reason, broken.map(({ message }) => message).join('; '));
}

/** Returns the end of a message, with the value that breaks the rule. Omits objects, because converting one to a string may throw. */
function got(value: unknown): string {
  if (isText(value)) return ` (got ${quoted(value)})`;
  return typeof value === 'number' ? ` (got ${value})` : '';
}

/** A placeholder for the ID of an event, with which the other fields can be checked even if the ID is invalid. */
export const ANY_UUID = '00000000-0000-0000-0000-000000000000';

/**
 * Rejects an event sent over HTTP because of its ID. Any name is allowed there, because the collector derives a UUID from it.
 * @param others the result of checking the event with a valid ID. The message also lists its problems.
 */
export function invalidSentId(others: Checked<unknown>): Rejected {
  const message = `eventId ${NAME_RULE}`;
  return rejected('invalid_event_id', others.ok ? message : `${message}; ${others.message}`);
}

function unknownFields(names: readonly string[]): Rejected {
  const others = names.length - MAX_NAMED_FIELDS;
  const list = names.slice(0, MAX_NAMED_FIELDS).map((name) => JSON.stringify(name));
  const fields = Object.keys(EVENT_FIELDS).join(', ');
  const message = `unknown field ${list.join(', ')}${others > 0 ? ` and ${others} more` : ''}; the fields are ${fields}`;
  return rejected('unknown_field', message);
}

function usageRejection(dimension: BillingDimension, usage: unknown): Rejected {
  const rule = digitsOf(usage) ? `must be a whole number, because ${dimension} counts events` : USAGE_RULE;
  return rejected('invalid_usage', `usage ${rule}${got(usage)}`);
}
