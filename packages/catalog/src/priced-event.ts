/** The check that decides whether an event counts: its own rules, and that there is a price for it. */
import { parseUsageEvent, type UsageEvent } from './event.js';
import type { Price, PriceBook } from './price-book.js';
import { type Checked, rejected } from './rejection.js';
import type { EpochMs } from './timestamp.js';

export interface EventAndPrice {
  readonly event: UsageEvent;
  /** In force at the event's timestamp. */
  readonly price: Price;
}

/**
 * Services that answer a producer check with this what the ingest worker checks with it later, so that both say the same.
 * @param now for the rule "not more than 10 minutes in the future"
 */
export function parsePricedEvent(input: unknown, book: PriceBook, now: EpochMs): Checked<EventAndPrice> {
  const checked = parseUsageEvent(input, now);
  if (!checked.ok) return checked;
  const event = checked.value;
  const price = book.priceAt(event.accountId, event.billingDimension, event.timestamp);
  if (price) return { ok: true, value: { event, price } };
  return rejected('no_price', `the price book has no price for ${event.billingDimension} at the event's timestamp`);
}
