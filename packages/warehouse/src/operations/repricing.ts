/** The events of an account in a window, as re-pricing needs them: in steps, and first what each dimension holds. */
import {
  BILLING_DIMENSIONS,
  COST_SCALE,
  type EpochMs,
  MS_PER_HOUR,
  parseDecimalText,
  RESOURCE_TYPES,
  toScaled,
  USAGE_SCALE,
  type Window,
} from '@meterline/catalog';
import { z } from 'zod';
import type { Relation, Warehouse } from '../clickhouse/connection.js';
import type { PricedEvent } from '../events/event-rows.js';
import { eventsCondition, selectionParameters, type TimeSpan } from '../metrics/plan.js';

export interface RepricingScope {
  readonly accountId: string;
  readonly window: Window;
}

/** An event's place in the order in which the table is read. */
export type EventKey = Pick<PricedEvent, 'eventId' | 'timestamp'>;

const integer = z
  .string()
  .regex(/^-?\d+$/)
  .transform(Number);

const dimensionSpan = z
  .object({
    billingDimension: z.enum(BILLING_DIMENSIONS),
    events: integer,
    firstEventId: z.string(),
    firstTimestamp: integer,
  })
  .transform(({ firstEventId: eventId, firstTimestamp: timestamp, ...span }) => ({
    ...span,
    /** The oldest event: if a price book has a price for it, it has one for all. */
    first: { eventId, timestamp },
  }));

/** What a billing dimension holds in the window; voided events do not count. */
type DimensionSpan = z.output<typeof dimensionSpan>;

export async function readDimensionSpans(warehouse: Warehouse, scope: RepricingScope): Promise<DimensionSpan[]> {
  const statement = {
    name: 'read_dimension_spans',
    query: `
SELECT
  billing_dimension AS billingDimension,
  count() AS events,
  argMin(event_id, (timestamp, event_id)) AS firstEventId,
  toUnixTimestamp64Milli(min(timestamp)) AS firstTimestamp
FROM usage_events FINAL
WHERE ${scopeCondition(scope)}
GROUP BY billing_dimension
ORDER BY billing_dimension`,
    query_params: scopeParameters(scope),
  };
  return warehouse.read(statement, dimensionSpan);
}

function scopeCondition({ accountId, window }: RepricingScope): string {
  return eventsCondition([accountId], spanOf(window), 0).join('\n  AND ');
}

function scopeParameters({ accountId, window }: RepricingScope): Relation['query_params'] {
  return selectionParameters({ accounts: [accountId], filters: {} }, [spanOf(window)]);
}

function spanOf({ startTime, endTime }: Window): TimeSpan {
  return { from: startTime, to: endTime };
}

function hourInSeconds(instant: EpochMs): number {
  return (Math.floor(instant / MS_PER_HOUR) * MS_PER_HOUR) / 1000;
}

const eventRow = z
  .object({
    eventId: z.string(),
    accountId: z.string(),
    instant: integer,
    workspace: z.string(),
    resourceType: z.enum(RESOURCE_TYPES),
    resourceName: z.string(),
    resourceUuid: z.string(),
    billingDimension: z.enum(BILLING_DIMENSIONS),
    usage: scaled(USAGE_SCALE),
    revision: z.number(),
    voided: z.boolean(),
    cost: scaled(COST_SCALE),
    priceRevision: z.number(),
    priceBook: z.number(),
  })
  .transform(({ instant: timestamp, ...event }): PricedEvent => ({ ...event, timestamp }));

/**
 * One step through the scope in the order of the table's key, which no revision can change: an event keeps its hour and
 * its id. So the server reads from the step's start and stops at its end, and no event is passed over.
 * @param after the last event of the step before
 * @returns at most `limit` events that count, with their cost so far; fewer when there are no more
 */
export async function readRepricingStep(
  warehouse: Warehouse,
  scope: RepricingScope,
  after: EventKey | undefined,
  limit: number,
): Promise<PricedEvent[]> {
  const key = "(toDateTime({after_hour: UInt32}, 'UTC'), UUIDToNum({after_id: UUID}))";
  const statement = {
    name: 'read_repricing_step',
    query: `
SELECT
  event_id AS eventId,
  account_id AS accountId,
  toUnixTimestamp64Milli(usage_events.timestamp) AS instant,
  workspace,
  resource_type AS resourceType,
  resource_name AS resourceName,
  resource_uuid AS resourceUuid,
  billing_dimension AS billingDimension,
  usage,
  revision,
  voided,
  cost,
  price_revision AS priceRevision,
  price_book AS priceBook
FROM usage_events FINAL
WHERE ${scopeCondition(scope)}${
      after
        ? `
  AND event_hour >= toDateTime({after_hour: UInt32}, 'UTC')
  AND (event_hour, UUIDToNum(event_id)) > ${key}`
        : ''
    }
ORDER BY event_hour, UUIDToNum(event_id)
LIMIT {limit: UInt32}`,
    query_params: {
      ...scopeParameters(scope),
      limit,
      ...(after && { after_hour: hourInSeconds(after.timestamp), after_id: after.eventId }),
    },
  };
  return warehouse.read(statement, eventRow);
}

function scaled(scale: number) {
  return z.string().transform((text, context) => {
    const digits = parseDecimalText(text);
    if (digits) return toScaled(digits, scale);
    context.addIssue({ code: 'custom', message: 'must be a decimal, at least 0' });
    return z.NEVER;
  });
}
