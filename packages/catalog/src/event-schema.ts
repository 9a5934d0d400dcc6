/**
 * The shape of a usage event as a producer sends it. Source: DESIGN section 3. The rules are written out instead of with zod,
 * because producers load them: zod is 94 kB of a producer's bundle, these are 2, and take a third of its time (decision 0025).
 */
import {
  BILLING_DIMENSIONS,
  type BillingDimension,
  isBillingDimension,
  isResourceType,
  RESOURCE_TYPES,
  type ResourceType,
} from './dimensions.js';
import type { RejectionReason } from './rejection.js';

export const MAX_NAME_LENGTH = 256;
export const MAX_REVISION = 65_535;

/** With the u flag a length counts code points, and a surrogate matches \p{Cs} only when it stands alone. */
const NAME = /^[^\p{Cc}\p{Cs}]{1,256}$/u;
const UUID = /^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i;

/** A usage event as it travels: what a producer puts into a job. */
export interface UsageEventInput {
  eventId: string;
  accountId: string;
  workspace: string;
  resourceType: ResourceType;
  resourceName: string;
  /** Many serialisers write an absent value as null or as an empty text; both mean absent. */
  resourceUuid?: string | null | undefined;
  billingDimension: BillingDimension;
  usage: number | string;
  timestamp: string;
  revision?: number | undefined;
  void?: boolean | undefined;
}

export type UsageEventField = keyof UsageEventInput;

/** Whether a text may be the name of an account, a workspace or a resource, or a resource's UUID. */
export function isName(text: string): boolean {
  return NAME.test(text);
}

/** Whether a text may be an event's id. */
export function isUuid(text: string): boolean {
  return UUID.test(text);
}

/** Whether an event may have a field of this name. */
export function isEventField(name: string): name is UsageEventField {
  return FIELD_NAMES.has(name);
}

interface FieldRule {
  readonly holds: (value: unknown) => boolean;
  /** In words, to follow the field's name. */
  readonly rule: string;
  /** The code for a value that breaks it. */
  readonly reason: RejectionReason;
}

export const USAGE_RULE = 'must be a number or decimal string, at least 0 and below 10^15, without an exponent';
export const TIMESTAMP_RULE =
  'must be RFC 3339 in UTC (Z or +00:00), from 1970 on, with at most 9 fraction digits, such as 2025-10-01T00:00:00Z';
const NAME_RULE = `must be a string of 1 to ${MAX_NAME_LENGTH} characters without control characters`;
const isText = (value: unknown) => typeof value === 'string';
const isNameValue = (value: unknown) => isText(value) && isName(value);
const field = (reason: RejectionReason, holds: FieldRule['holds'], rule: string): FieldRule => ({
  holds,
  rule,
  reason,
});
const name = (reason: RejectionReason) => field(reason, isNameValue, NAME_RULE);

const EVENT_FIELDS: Readonly<Record<UsageEventField, FieldRule>> = {
  eventId: field(
    'invalid_event_id',
    (value) => isText(value) && isUuid(value),
    'must be a UUID, such as 0190c5e4-7b1a-7def-8abc-0123456789ab',
  ),
  accountId: name('invalid_account_id'),
  workspace: name('invalid_workspace'),
  resourceType: field(
    'invalid_resource_type',
    (value) => isText(value) && isResourceType(value),
    `must be one of ${RESOURCE_TYPES.join(', ')}`,
  ),
  resourceName: name('invalid_resource_name'),
  resourceUuid: field(
    'invalid_resource_uuid',
    (value) => value === undefined || value === null || value === '' || isNameValue(value),
    NAME_RULE,
  ),
  billingDimension: field(
    'invalid_billing_dimension',
    (value) => isText(value) && isBillingDimension(value),
    `must be one of ${BILLING_DIMENSIONS.join(', ')}`,
  ),
  usage: field('invalid_usage', (value) => isText(value) || Number.isFinite(value), USAGE_RULE),
  timestamp: field('invalid_timestamp', isText, TIMESTAMP_RULE),
  revision: field(
    'invalid_revision',
    (value) =>
      value === undefined ||
      (typeof value === 'number' && Number.isInteger(value) && value >= 0 && value <= MAX_REVISION),
    `must be an integer from 0 to ${MAX_REVISION}`,
  ),
  void: field('invalid_void', (value) => value === undefined || typeof value === 'boolean', 'must be true or false'),
};

const FIELD_NAMES: ReadonlySet<string> = new Set(Object.keys(EVENT_FIELDS));
const FIELD_RULES = Object.entries(EVENT_FIELDS);

/** Whether each field keeps its own rule, and there is no other field. */
export function hasEventShape(
  input: Readonly<Record<string, unknown>>,
): input is Readonly<Record<string, unknown>> & UsageEventInput {
  for (const [field, { holds }] of FIELD_RULES) if (!holds(input[field])) return false;
  for (const key of Object.keys(input)) if (!isEventField(key)) return false;
  return true;
}

export interface ShapeFault {
  readonly reason: RejectionReason;
  readonly message: string;
}

/** What is wrong with the shape: fields in the order above, then unknown ones. Empty when {@link hasEventShape}. */
export function shapeFaults(input: Readonly<Record<string, unknown>>): ShapeFault[] {
  const faults: ShapeFault[] = [];
  for (const [field, { holds, rule, reason }] of FIELD_RULES) {
    const value = input[field];
    if (holds(value)) continue;
    if (value === undefined) faults.push({ reason: 'missing_field', message: `${field} is missing` });
    else faults.push({ reason, message: `${field} ${rule}` });
  }
  const unknown = Object.keys(input).filter((key) => !isEventField(key));
  if (unknown.length > 0) {
    const list = unknown.map((key) => JSON.stringify(key)).join(', ');
    const message = `unknown field ${list}; the fields are ${[...FIELD_NAMES].join(', ')}`;
    faults.push({ reason: 'unknown_field', message });
  }
  return faults;
}
