/** The shape of a usage event as a producer sends it. Source: DESIGN section 3. */
import * as z from 'zod';
import { BILLING_DIMENSIONS, RESOURCE_TYPES } from './dimensions.js';

export const MAX_NAME_LENGTH = 256;
export const MAX_REVISION = 65_535;

/** With the u flag a length counts code points, and a surrogate matches \p{Cs} only when it stands alone. */
const NAME = /^[^\p{Cc}\p{Cs}]{1,256}$/u;
const UUID = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/i;

const NAME_RULE = `must be a string of 1 to ${MAX_NAME_LENGTH} characters without control characters`;
const REVISION_RULE = `must be an integer from 0 to ${MAX_REVISION}`;

/** Whether a text may be the name of an account, a workspace or a resource, or a resource's UUID. */
export function isName(text: string): boolean {
  return NAME.test(text);
}

const name = z.string(NAME_RULE).regex(NAME, NAME_RULE);

export const usageEventSchema = z.strictObject({
  eventId: z.string('must be a UUID').regex(UUID, 'must be a UUID, such as 0190c5e4-7b1a-7def-8abc-0123456789ab'),
  accountId: name,
  workspace: name,
  resourceType: z.enum(RESOURCE_TYPES, `must be one of ${RESOURCE_TYPES.join(', ')}`),
  resourceName: name,
  resourceUuid: name.optional(),
  billingDimension: z.enum(BILLING_DIMENSIONS, `must be one of ${BILLING_DIMENSIONS.join(', ')}`),
  usage: z.union([z.number(), z.string()], 'must be a number or a decimal string'),
  timestamp: z.string('must be an RFC 3339 timestamp in UTC, such as 2025-10-01T00:00:00Z'),
  revision: z.int(REVISION_RULE).min(0, REVISION_RULE).max(MAX_REVISION, REVISION_RULE).optional(),
  void: z.boolean('must be true or false').optional(),
});

/** A usage event as it travels: what a producer puts into a job. */
export type UsageEventInput = z.input<typeof usageEventSchema>;
export type UsageEventField = keyof UsageEventInput;
