import { randomUUID } from 'node:crypto';
import type { PricedEvent } from '@meterline/warehouse';

/** An event of its own: one GB-second of a sandbox for one dollar on 1 October 2025, but for what a test says. */
export function pricedEvent(changes: Partial<PricedEvent> = {}): PricedEvent {
  return {
    eventId: randomUUID(),
    accountId: 'acme',
    workspace: 'production',
    resourceType: 'sandbox',
    resourceName: 'builder',
    resourceUuid: '',
    billingDimension: 'sandbox_compute_runtime_gbs',
    usage: 10n ** 9n,
    timestamp: Date.UTC(2025, 9, 1),
    revision: 0,
    voided: false,
    cost: 10n ** 12n,
    priceRevision: 0,
    priceBook: 0,
    ...changes,
  };
}
