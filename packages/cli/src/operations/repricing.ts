/** Recalculates the costs of an account's events with another price book. */
import {
  BILLING_DIMENSIONS,
  type BillingDimension,
  COST_SCALE,
  costOf,
  type EpochMs,
  formatScaled,
  formatTimestamp,
  MAX_REVISION,
  type PriceBook,
} from '@meterline/catalog';
import {
  checkPriceBook,
  type EventKey,
  EventRows,
  insertUsageEvents,
  markDirtyHours,
  Names,
  PriceBookConflictError,
  type PricedEvent,
  type RepricingScope,
  readBounds,
  readDimensionSpans,
  readRepricingStep,
  registerPriceBook,
  type Shards,
} from '@meterline/warehouse';
import { CommandError } from '../failure.js';
import type { OnProgress } from './operation.js';

export interface RepricingOptions {
  readonly shards: Shards;
  readonly scope: RepricingScope;
  readonly book: PriceBook;
  /** Whether to only add up the changes, without writing. */
  readonly dryRun: boolean;
  /** The number of events per step, which are held in memory. */
  readonly step: number;
  /** Ends the re-pricing between two steps. */
  readonly signal: AbortSignal;
  readonly onProgress: OnProgress;
}

/**
 * Re-prices events in steps.
 *
 * Crash order of a step: read the events, insert them as one block, mark their sealed hours as dirty so that a worker recomputes the
 * rollups. A crash can leave the current step inserted but not marked. The next run reads the same events, skips those with the new cost,
 * and marks the hours of all events: the new cost of an event does not prove that its hour was marked.
 * A revision that arrives between reading and inserting wins, because revisions are compared before price revisions. The worker has priced
 * it with its own book, as it does all events that arrive after their step.
 * @param changes collects the changes so far, also if this rejects
 * @throws CommandError before anything is written, if the window includes closed months, the book lacks a price for an event, or its
 * version is in use with other prices
 */
export async function reprice(options: RepricingOptions, changes: CostChanges): Promise<void> {
  const { shards, scope, book, dryRun, step, signal, onProgress } = options;
  const warehouse = shards.whole;
  requireOpen(scope, (await readBounds(warehouse)).closedBefore);
  // The same check as at the start of a worker: a version always means the same prices.
  await admitted(checkPriceBook(warehouse, book));
  const spans = await readDimensionSpans(warehouse, scope);
  for (const { billingDimension, first } of spans) requirePrice(book, scope.accountId, billingDimension, first);
  // Registered after the check for prices, so that a book without one can be fixed without a new version.
  if (!dryRun && spans.length > 0) await admitted(registerPriceBook(shards, book));
  const total = spans.reduce((sum, { events }) => sum + events, 0);
  let done = 0;
  onProgress(done, total);
  let last: PricedEvent | undefined;
  for (let isMore = total > 0; isMore && !signal.aborted; ) {
    const events = await readRepricingStep(warehouse, scope, last, step);
    const repriced = repricedEvents(events, book, changes);
    if (!dryRun) {
      await insertUsageEvents(warehouse, repriced);
      // Mark the hours of all events of the step, because those with the new cost may be unmarked. In a month that is being dropped,
      // rollup rows are final and marks have no effect. As in a worker, the bounds are read after the insert.
      const { hourly, droppingBefore } = await readBounds(warehouse);
      await markDirtyHours(warehouse, [EventRows.of(events, new Names())], hourly.sealingUntil);
      requireOpen(scope, droppingBefore);
    }
    last = events.at(-1);
    done += events.length;
    isMore = events.length === step;
    onProgress(done, total);
  }
}

function requireOpen({ window }: RepricingScope, before: EpochMs): void {
  if (window.startTime >= before) return;
  throw new CommandError(
    `months before ${formatTimestamp(before)} are closed and cannot be re-priced; use this time or a later one as --from`,
  );
}

async function admitted(check: Promise<unknown>): Promise<void> {
  try {
    await check;
  } catch (error) {
    if (error instanceof PriceBookConflictError) throw new CommandError(error.message, undefined, { cause: error });
    throw error;
  }
}

function repricedEvents(events: readonly PricedEvent[], book: PriceBook, changes: CostChanges): PricedEvent[] {
  return events.flatMap((event) => {
    const repriced = repricedEvent(event, book);
    changes.add(event.billingDimension, event.cost, repriced?.cost ?? event.cost);
    return repriced ? [repriced] : [];
  });
}

/**
 * Returns the event with its cost under the book and the next price revision. This row replaces the current row, and a higher revision of
 * the producer replaces it, in either order of arrival.
 * @returns undefined if the cost is already correct, so that a second run only does the rest
 * @throws CommandError if the book has no price for the event, or if no price revision is left
 */
export function repricedEvent(event: PricedEvent, book: PriceBook): PricedEvent | undefined {
  const price = requirePrice(book, event.accountId, event.billingDimension, event);
  const cost = costOf(event.usage, price);
  if (cost === event.cost) return undefined;
  if (event.priceRevision === MAX_REVISION) {
    throw new CommandError(`event ${event.eventId} was re-priced ${MAX_REVISION} times, which is the maximum`);
  }
  return { ...event, cost, priceRevision: event.priceRevision + 1, priceBook: book.version };
}

/** @throws CommandError if the event is older than the first price of its dimension */
function requirePrice(
  book: PriceBook,
  accountId: string,
  dimension: BillingDimension,
  { eventId, timestamp }: EventKey,
) {
  const price = book.priceAt(accountId, dimension, timestamp);
  if (price) return price;
  throw new CommandError(
    `the price book has no price for ${dimension} at ${formatTimestamp(timestamp)}, the time of event ${eventId}; ` +
      'add an earlier price to the book, or use a later --from',
  );
}

/** Costs before and after, of one dimension or all. Amounts are in USD, scaled by 10^12. */
interface Sum {
  readonly events: number;
  readonly changed: number;
  readonly before: bigint;
  readonly after: bigint;
}

const NOTHING: Sum = { events: 0, changed: 0, before: 0n, after: 0n };

export class CostChanges {
  readonly #sums = new Map<BillingDimension | 'total', Sum>();

  /** Adds an event. @param before, after USD scaled by 10^12 */
  add(dimension: BillingDimension, before: bigint, after: bigint): void {
    for (const key of [dimension, 'total'] as const) {
      const sum = this.#sums.get(key) ?? NOTHING;
      this.#sums.set(key, {
        events: sum.events + 1,
        changed: sum.changed + (before === after ? 0 : 1),
        before: sum.before + before,
        after: sum.after + after,
      });
    }
  }

  /** Returns the dimensions with events, in the order of the catalog. */
  byDimension(): CostChange[] {
    return BILLING_DIMENSIONS.filter((dimension) => this.#sums.has(dimension)).map((dimension) => this.#of(dimension));
  }

  total(): CostChange {
    return this.#of('total');
  }

  #of(billingDimension: CostChange['billingDimension']): CostChange {
    const { before, after, ...counts } = this.#sums.get(billingDimension) ?? NOTHING;
    const usd = (amount: bigint) => formatScaled(amount, COST_SCALE);
    return { billingDimension, ...counts, before: usd(before), after: usd(after), difference: usd(after - before) };
  }
}

/** Events in the window, events with a new cost, and exact amounts in USD as text. */
export interface CostChange extends Pick<Sum, 'events' | 'changed'> {
  readonly billingDimension: BillingDimension | 'total';
  readonly before: string;
  readonly after: string;
  readonly difference: string;
}
