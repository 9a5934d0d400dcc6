/** Recalculates the costs of an account's events with another price book. */
import {
  type BillingDimension,
  billingDimensions,
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
  readonly dryRun: boolean;
  /** Number of events per step. The events of a step are held in memory. */
  readonly step: number;
  readonly signal: AbortSignal;
  readonly onProgress: OnProgress;
}

/**
 * Re-prices events in steps.
 * Crash order of a step: read the events, insert them as one block, mark their sealed hours as dirty so that a worker recomputes the
 * rollups. After a crash, the events of the current step may be inserted, but their hours not marked. The next run reads the same events.
 * It does not insert the events that have the new cost again, but marks the hours of all events, because a new cost does not prove that the
 * hour was marked.
 * If the producer corrects an event (sends a higher revision) between reading and inserting, the correction wins, because the revision is
 * compared before the price revision, the number of re-pricings. A worker prices this correction, and every other event that arrives after
 * its step, with the worker's own book.
 * @param changes collects the changes so far, even if the promise rejects
 * @throws CommandError before anything is written, if the window includes closed months, the book lacks a price for an event, or its
 * version is in use with other prices
 */
export async function reprice(options: RepricingOptions, changes: CostChanges): Promise<void> {
  const { shards, scope, book, dryRun, step, signal, onProgress } = options;
  const warehouse = shards.whole;
  requireOpen(scope, (await readBounds(warehouse)).closedBefore);
  // Workers make the same check when they start, so that a version always means the same prices.
  await admitted(checkPriceBook(warehouse, book));
  const spans = await readDimensionSpans(warehouse, scope);
  for (const { billingDimension, first } of spans) requirePrice(book, scope.accountId, billingDimension, first);
  // Register the book only after the check for prices, so that a book that lacks a price can be fixed without a new version.
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
      // Mark the hours of all events of the step, because an earlier run may have ended before it marked the hours of events with the new
      // cost. Fail if the month is being dropped: its rollup rows are final, so marks have no effect. Like a worker, read the bounds after
      // the insert.
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
 * Returns the event with its cost by the price book and the next price revision. This row replaces the current row, and a higher revision
 * from the producer replaces this row, whichever arrives first.
 * @returns undefined if the cost is already correct, so that a second run only completes the rest
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

/** Costs of one dimension or of all, before and after the re-pricing. Amounts are in USD, scaled by 10^12. */
interface Sum {
  readonly events: number;
  readonly changed: number;
  readonly before: bigint;
  readonly after: bigint;
}

const NOTHING: Sum = { events: 0, changed: 0, before: 0n, after: 0n };

export class CostChanges {
  readonly #sums = new Map<BillingDimension | 'total', Sum>();

  /** Adds an event. @param before, after its costs in USD, scaled by 10^12 */
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

  byDimension(): CostChange[] {
    const used = billingDimensions().filter((dimension) => this.#sums.has(dimension));
    return used.map((dimension) => this.#of(dimension));
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

/** Number of events in the window, number of events with a new cost, and exact amounts in USD as decimal strings. */
export interface CostChange extends Pick<Sum, 'events' | 'changed'> {
  readonly billingDimension: BillingDimension | 'total';
  readonly before: string;
  readonly after: string;
  readonly difference: string;
}
