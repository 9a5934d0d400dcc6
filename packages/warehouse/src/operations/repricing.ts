/** Reads an account's events in a window for re-pricing: first a summary of each billing dimension, then the events in steps. */
import { COST_SCALE, type DecimalText, parseDecimalText, toScaled, USAGE_SCALE, type Window } from '@meterline/catalog';
import { z } from 'zod';
import type { Warehouse } from '../clickhouse/connection.js';
import type { PricedEvent } from '../events/event-rows.js';
import { eventListStatement, placeOf, storedPayload } from '../metrics/event-list.js';
import { eventsCondition, selectionParameters } from '../metrics/plan.js';

export interface RepricingScope {
  readonly accountId: string;
  readonly window: Window;
}

export type EventKey = Pick<PricedEvent, 'eventId' | 'timestamp'>;

const dimensionSpan = z
  .object({
    billingDimension: z.string(),
    events: z.coerce.number(),
    firstEventId: z.string(),
    firstTimestamp: z.coerce.number(),
  })
  .transform(({ firstEventId: eventId, firstTimestamp: timestamp, ...span }) => ({
    ...span,
    /** The oldest event. If a price book has a price for this event, it also has a price for all later events. */
    first: { eventId, timestamp },
  }));

type DimensionSpan = z.output<typeof dimensionSpan>;

export async function readDimensionSpans(
  warehouse: Warehouse,
  { accountId, window }: RepricingScope,
): Promise<DimensionSpan[]> {
  const accounts = [accountId];
  const span = { from: window.startTime, to: window.endTime };
  const statement = {
    name: 'read_dimension_spans',
    query: `
SELECT
  billing_dimension AS billingDimension,
  count() AS events,
  argMin(event_id, (timestamp, event_id)) AS firstEventId,
  toUnixTimestamp64Milli(min(timestamp)) AS firstTimestamp
FROM usage_events FINAL
WHERE ${eventsCondition(accounts, span, 0).join('\n  AND ')}
GROUP BY billing_dimension
ORDER BY billing_dimension`,
    query_params: selectionParameters({ accounts, filters: {} }, [span]),
  };
  return warehouse.read(statement, dimensionSpan);
}

const pricedEvent = storedPayload.transform(
  ({ id: eventId, at: timestamp, workspace, usage, revision, voided, cost, ...row }) => ({
    eventId,
    timestamp,
    workspace,
    revision,
    voided,
    usage: scaledBy(USAGE_SCALE, usage),
    cost: scaledBy(COST_SCALE, cost),
    resourceType: row.resource_type,
    resourceName: row.resource_name,
    resourceUuid: row.resource_uuid,
    billingDimension: row.billing_dimension,
    priceRevision: row.price_revision,
    priceBook: row.price_book,
  }),
);

function scaledBy(scale: number, amount: DecimalText): bigint {
  const digits = parseDecimalText(amount);
  if (!digits) throw new RangeError(`${amount} is below 0`);
  return toScaled(digits, scale);
}

/**
 * Returns the next `limit` events that are not voided, with their current cost. Only the last step returns fewer. No event is skipped.
 * @param after the last event of the previous step
 */
export async function readRepricingStep(
  warehouse: Warehouse,
  scope: RepricingScope,
  after: EventKey | undefined,
  limit: number,
): Promise<PricedEvent[]> {
  const place = after && placeOf({ at: after.timestamp, id: after.eventId });
  const list = { filters: {}, includesVoided: false, orderBy: 'timestamp', order: 'asc' } as const;
  const statement = eventListStatement({ ...scope, ...list, after: place, limit });
  const events = await warehouse.read({ ...statement, name: 'read_repricing_step' }, pricedEvent);
  return events.map((event) => ({ ...event, accountId: scope.accountId }));
}
