/** What an event costs under another price book. Pure. */
import { type BillingDimension, costOf, formatTimestamp, MAX_REVISION, type PriceBook } from '@meterline/catalog';
import type { EventKey, PricedEvent } from '@meterline/warehouse';
import { CommandError } from '../command-error.js';

/**
 * The row that gives the event its cost under the book: the same event with the next price revision, so that it replaces
 * the row of now and is itself replaced by any higher revision of the producer, whichever arrives first. Undefined when
 * the cost is right already, which is what makes a second run do only the rest.
 * @throws CommandError when the book has no price for the event, or its price revisions are used up
 */
export function repricedEvent(event: PricedEvent, book: PriceBook): PricedEvent | undefined {
  const price = requirePrice(book, event.accountId, event.billingDimension, event);
  const cost = costOf(event.usage, price);
  if (cost === event.cost) return undefined;
  if (event.priceRevision === MAX_REVISION) {
    throw new CommandError(`event ${event.eventId} has been re-priced ${MAX_REVISION} times and cannot be again`);
  }
  return { ...event, cost, priceRevision: event.priceRevision + 1, priceBook: book.version };
}

/** @throws CommandError when the event is older than the first price of its dimension */
export function requirePrice(
  book: PriceBook,
  accountId: string,
  dimension: BillingDimension,
  { eventId, timestamp }: EventKey,
) {
  const price = book.priceAt(accountId, dimension, timestamp);
  if (price) return price;
  throw new CommandError(
    `the price book has no price for ${dimension} at ${formatTimestamp(timestamp)}, the time of event ${eventId}; ` +
      'add an earlier price to the book, or begin later with --from',
  );
}
