/** The events of an account in a window, as re-pricing needs them: in steps, and first what each dimension holds. */
import {
  BILLING_DIMENSIONS,
  type BillingDimension,
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
import type { Relation, Statement, Warehouse } from '../clickhouse/connection.js';
import type { PricedEvent } from '../events/event-rows.js';
import { eventsCondition, selectionParameters, type TimeSpan } from '../metrics/plan.js';

export interface RepricingScope {
  readonly accountId: string;
  readonly window: Window;
}

/** An event's place in the order in which the table is read. */
export type EventKey = Pick<PricedEvent, 'eventId' | 'timestamp'>;

/** What a billing dimension holds in the window; voided events do not count. */
export interface DimensionSpan {
  readonly billingDimension: BillingDimension;
  readonly events: number;
  /** The oldest event: if a price book has a price for it, it has one for all. */
  readonly first: EventKey;
}

const integer = z
  .string()
  .regex(/^-?\d+$/)
  .transform(Number);

export function dimensionSpansStatement(scope: RepricingScope): Statement {
  return {
    name: 'read_dimension_spans',
    query: `
SELECT
  billing_dimension,
  count() AS events,
  argMin(event_id, (timestamp, event_id)) AS first_event_id,
  toUnixTimestamp64Milli(min(timestamp)) AS first_timestamp
FROM usage_events FINAL
WHERE ${scopeCondition(scope)}
GROUP BY billing_dimension
ORDER BY billing_dimension`,
    query_params: scopeParameters(scope),
  };
}

const spanRow = z
  .object({
    billing_dimension: z.enum(BILLING_DIMENSIONS),
    events: integer,
    first_event_id: z.string(),
    first_timestamp: integer,
  })
  .transform(
    (row): DimensionSpan => ({
      billingDimension: row.billing_dimension,
      events: row.events,
      first: { eventId: row.first_event_id, timestamp: row.first_timestamp },
    }),
  );

export async function readDimensionSpans(warehouse: Warehouse, scope: RepricingScope): Promise<DimensionSpan[]> {
  return warehouse.read(dimensionSpansStatement(scope), spanRow);
}

/**
 * One step through the scope in the order of the table's key, which no revision can change: an event keeps its hour and
 * its id. So the server reads from the step's start and stops at its end, and no event is passed over.
 */
export function repricingStepStatement(scope: RepricingScope, after: EventKey | undefined, limit: number): Statement {
  const key = "(toDateTime({after_hour: UInt32}, 'UTC'), UUIDToNum({after_id: UUID}))";
  return {
    name: 'read_repricing_step',
    query: `
SELECT
  event_id,
  toUnixTimestamp64Milli(usage_events.timestamp) AS instant,
  workspace,
  resource_type,
  resource_name,
  resource_uuid,
  billing_dimension,
  usage,
  revision,
  cost,
  price_revision,
  price_book
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
}

function scopeCondition({ window }: RepricingScope): string {
  return eventsCondition(spanOf(window), 0).join('\n  AND ');
}

function scopeParameters({ accountId, window }: RepricingScope): Relation['query_params'] {
  return selectionParameters({ accountId, filters: {} }, [spanOf(window)]);
}

function spanOf({ startTime, endTime }: Window): TimeSpan {
  return { from: startTime, to: endTime };
}

function hourInSeconds(instant: EpochMs): number {
  return (Math.floor(instant / MS_PER_HOUR) * MS_PER_HOUR) / 1000;
}

const eventRow = z.object({
  event_id: z.string(),
  instant: integer,
  workspace: z.string(),
  resource_type: z.enum(RESOURCE_TYPES),
  resource_name: z.string(),
  resource_uuid: z.string(),
  billing_dimension: z.enum(BILLING_DIMENSIONS),
  usage: scaled(USAGE_SCALE),
  revision: z.number(),
  cost: scaled(COST_SCALE),
  price_revision: z.number(),
  price_book: z.number(),
});

/**
 * @param after the last event of the step before
 * @returns at most `limit` events that count, with their cost so far; fewer when there are no more
 */
export async function readRepricingStep(
  warehouse: Warehouse,
  scope: RepricingScope,
  after: EventKey | undefined,
  limit: number,
): Promise<PricedEvent[]> {
  const rows = await warehouse.read(repricingStepStatement(scope, after, limit), eventRow);
  return rows.map((row) => ({
    eventId: row.event_id,
    accountId: scope.accountId,
    workspace: row.workspace,
    resourceType: row.resource_type,
    resourceName: row.resource_name,
    resourceUuid: row.resource_uuid,
    billingDimension: row.billing_dimension,
    usage: row.usage,
    timestamp: row.instant,
    revision: row.revision,
    voided: false,
    cost: row.cost,
    priceRevision: row.price_revision,
    priceBook: row.price_book,
  }));
}

function scaled(scale: number) {
  return z.string().transform((text, context) => {
    const digits = parseDecimalText(text);
    if (digits) return toScaled(digits, scale);
    context.addIssue({ code: 'custom', message: 'must be a decimal, at least 0' });
    return z.NEVER;
  });
}
