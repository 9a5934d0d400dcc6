/** Checks what a producer sent and turns it into a usage event that can be priced and stored. Source: DESIGN section 3. */
import type { z } from 'zod';
import {
  type DecimalDigits,
  decimalOfNumber,
  formatScaled,
  parseDecimalText,
  toScaled,
  USAGE_SCALE,
} from './decimal.js';
import { type BillingDimension, DIMENSIONS, type ResourceType } from './dimensions.js';
import { type UsageEventField, type UsageEventInput, usageEventSchema } from './event-schema.js';
import { type Checked, type RejectionReason, rejected } from './rejection.js';
import { type EpochMs, formatTimestamp, parseTimestamp } from './timestamp.js';

export interface UsageEvent {
  /** UUID in lower case. With accountId and the UTC hour of timestamp it identifies the event. */
  readonly eventId: string;
  readonly accountId: string;
  readonly workspace: string;
  readonly resourceType: ResourceType;
  readonly resourceName: string;
  /** Empty when the event has none. */
  readonly resourceUuid: string;
  readonly billingDimension: BillingDimension;
  /** In the dimension's unit, scaled by 10^9. */
  readonly usage: bigint;
  readonly timestamp: EpochMs;
  readonly revision: number;
  readonly voided: boolean;
}

/** Usage is below 10^15: at most this many integer digits. */
const MAX_USAGE_DIGITS = 15;
const MAX_CLOCK_SKEW_MS = 10 * 60_000;

const USAGE_RULE = 'usage must be a number or decimal string, at least 0 and below 10^15, without an exponent';
const TIMESTAMP_RULE =
  'timestamp must be RFC 3339 in UTC (Z or +00:00), from 1970 on, with at most 9 fraction digits, such as 2025-10-01T00:00:00Z';

/** The code for a field whose value breaks its rule. */
const INVALID_FIELD = {
  eventId: 'invalid_event_id',
  accountId: 'invalid_account_id',
  workspace: 'invalid_workspace',
  resourceType: 'invalid_resource_type',
  resourceName: 'invalid_resource_name',
  resourceUuid: 'invalid_resource_uuid',
  billingDimension: 'invalid_billing_dimension',
  usage: 'invalid_usage',
  timestamp: 'invalid_timestamp',
  revision: 'invalid_revision',
  void: 'invalid_void',
} as const satisfies Record<UsageEventField, RejectionReason>;

/**
 * Checks one event and converts it to the form that is stored.
 * @param now for the rule "not more than 10 minutes in the future"
 */
export function parseUsageEvent(input: unknown, now: EpochMs): Checked<UsageEvent> {
  const shape = usageEventSchema.safeParse(input);
  if (!shape.success) return shapeRejection(input, shape.error);
  const event = shape.data;

  const { resourceType } = DIMENSIONS[event.billingDimension];
  if (event.resourceType !== resourceType) {
    return rejected(
      'dimension_mismatch',
      `billingDimension ${event.billingDimension} belongs to resourceType ${resourceType}, not to ${event.resourceType}`,
    );
  }

  const usage = parseUsage(event.billingDimension, event.usage);
  if (!usage.ok) return usage;

  const timestamp = parseTimestamp(event.timestamp);
  if (timestamp === undefined || timestamp < 0) return rejected('invalid_timestamp', TIMESTAMP_RULE);
  if (timestamp > now + MAX_CLOCK_SKEW_MS) {
    return rejected('timestamp_in_future', 'timestamp must not be more than 10 minutes in the future');
  }

  return {
    ok: true,
    value: {
      eventId: event.eventId.toLowerCase(),
      accountId: event.accountId,
      workspace: event.workspace,
      resourceType: event.resourceType,
      resourceName: event.resourceName,
      resourceUuid: event.resourceUuid ?? '',
      billingDimension: event.billingDimension,
      usage: usage.value,
      timestamp,
      revision: event.revision ?? 0,
      voided: event.void ?? false,
    },
  };
}

/** The event as a producer sends it; parseUsageEvent reads it back as the same event. */
export function toUsageEventInput(event: UsageEvent): UsageEventInput {
  return {
    eventId: event.eventId,
    accountId: event.accountId,
    workspace: event.workspace,
    resourceType: event.resourceType,
    resourceName: event.resourceName,
    ...(event.resourceUuid !== '' && { resourceUuid: event.resourceUuid }),
    billingDimension: event.billingDimension,
    usage: formatScaled(event.usage, USAGE_SCALE),
    timestamp: formatTimestamp(event.timestamp),
    revision: event.revision,
    void: event.voided,
  };
}

/** How much of a dimension was used, scaled by 10^9: rounded half-even to nine decimals; a whole number where events are counted. */
export function parseUsage(dimension: BillingDimension, input: number | string): Checked<bigint> {
  const usage = usageDigits(input);
  if (!usage || usage.integer.length > MAX_USAGE_DIGITS) return rejected('invalid_usage', USAGE_RULE);
  if (DIMENSIONS[dimension].unit === 'count' && usage.fraction !== '') {
    return rejected('invalid_usage', `usage must be a whole number, because ${dimension} counts events`);
  }
  return { ok: true, value: toScaled(usage, USAGE_SCALE) };
}

function usageDigits(usage: number | string): DecimalDigits | undefined {
  if (typeof usage === 'string') return parseDecimalText(usage);
  return usage >= 0 ? decimalOfNumber(usage) : undefined;
}

/** The first broken rule decides the code. The message names all of them, so that they can be fixed in one go. */
function shapeRejection(input: unknown, error: z.ZodError): Checked<never> {
  if (!isRecord(input)) return rejected('event_not_an_object', 'an event must be a JSON object');
  const faults = error.issues.map((issue) => fault(issue, input));
  const reason = faults[0]?.reason ?? 'event_not_an_object';
  return rejected(reason, faults.map(({ message }) => message).join('; '));
}

function fault(issue: z.core.$ZodIssue, input: Record<string, unknown>): { reason: RejectionReason; message: string } {
  if (issue.code === 'unrecognized_keys') {
    const names = Object.keys(usageEventSchema.shape).join(', ');
    return {
      reason: 'unknown_field',
      message: `unknown field ${issue.keys.map((key) => JSON.stringify(key)).join(', ')}; the fields are ${names}`,
    };
  }
  const field = String(issue.path[0]);
  if (input[field] === undefined) return { reason: 'missing_field', message: `${field} is missing` };
  return { reason: invalidField(field), message: `${field} ${issue.message}` };
}

function invalidField(name: string): RejectionReason {
  return Object.entries(INVALID_FIELD).find(([field]) => field === name)?.[1] ?? 'event_not_an_object';
}

function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
