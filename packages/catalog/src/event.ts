/** Checks what a producer sent and turns it into a usage event that can be priced and stored. Source: DESIGN section 3. */
import {
  type DecimalDigits,
  decimalOfNumber,
  formatScaled,
  parseDecimalText,
  toScaled,
  USAGE_SCALE,
} from './decimal.js';
import { type BillingDimension, DIMENSIONS, type ResourceType } from './dimensions.js';
import { hasEventShape, shapeFaults, TIMESTAMP_RULE, USAGE_RULE, type UsageEventInput } from './event-schema.js';
import { type Checked, rejected } from './rejection.js';
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
export const MAX_CLOCK_SKEW_MS = 10 * 60_000;

/**
 * Checks one event and converts it to the form that is stored.
 * @param now for the rule "not more than 10 minutes in the future"
 */
export function parseUsageEvent(input: unknown, now: EpochMs): Checked<UsageEvent> {
  if (!isRecord(input)) return rejected('event_not_an_object', 'an event must be a JSON object');
  if (!hasEventShape(input)) return shapeRejection(input);
  const event: UsageEventInput = input;

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
  if (timestamp === undefined || timestamp < 0) return rejected('invalid_timestamp', `timestamp ${TIMESTAMP_RULE}`);
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
  if (!usage || usage.integer.length > MAX_USAGE_DIGITS) return rejected('invalid_usage', `usage ${USAGE_RULE}`);
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
export function shapeRejection(input: Readonly<Record<string, unknown>>): Checked<never> {
  const faults = shapeFaults(input);
  return rejected(faults[0]?.reason ?? 'event_not_an_object', faults.map(({ message }) => message).join('; '));
}

function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
