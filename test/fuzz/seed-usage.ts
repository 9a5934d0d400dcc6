/** The usage that the fuzzed requests ask about: two workspaces, several resources, events on every edge of the windows. */
import { BILLING_DIMENSIONS, DIMENSIONS, type UsageEventInput } from '@meterline/catalog';
import { ACCOUNT } from './callers.js';

const DAYS = [
  '1970-01-01T00:00:00Z',
  '2025-10-01T00:00:00Z',
  '2025-10-01T10:30:00Z',
  '2025-10-06T23:59:59.999Z',
  '2025-10-31T12:00:00Z',
];

export const USAGE: readonly UsageEventInput[] = DAYS.flatMap((timestamp, day) =>
  BILLING_DIMENSIONS.flatMap((billingDimension, dimension) =>
    ['main', 'other'].map((workspace, index) => ({
      eventId: `00000000-0000-7000-8000-${String(day * 1_000 + dimension * 10 + index).padStart(12, '0')}`,
      accountId: ACCOUNT,
      workspace,
      resourceType: DIMENSIONS[billingDimension].resourceType,
      resourceName: `box-${dimension % 3}`,
      ...(index === 0 && { resourceUuid: `uuid-${dimension}` }),
      billingDimension,
      usage: dimension + 1,
      timestamp,
    })),
  ),
);
