/** Gives the events of an account the cost they have under another price book. */
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
  /** Write nothing, and only add up what would change. */
  readonly dryRun: boolean;
  /** Events per step: what is held in memory at once. */
  readonly step: number;
  /** Ends the re-pricing between two steps. */
  readonly signal: AbortSignal;
  readonly onProgress: OnProgress;
}

/**
 * Crash order: a step is read, then inserted as one block, then its sealed hours are marked as dirty: a worker recomputes their
 * rollups. A crash leaves whole steps done, the one under way done or not, and then perhaps not marked. Running it again reads the
 * same events, leaves those that have their new cost already, and marks the hours of all: an event that has its new cost does
 * not prove that its hour was marked.
 * A revision that a producer sends between reading and inserting wins, because it is compared before the price revision. It
 * has the price of the worker's book, and so has an event that arrives when the steps have passed its place.
 * @param changes what has changed so far, also when this rejects
 * @throws CommandError when the window reaches into closed months, or the book lacks a price for an event, before anything is
 * written, or when its version is in use with other prices
 */
export async function reprice(options: RepricingOptions, changes: CostChanges): Promise<void> {
  const { shards, scope, book, dryRun, step, signal, onProgress } = options;
  const warehouse = shards.whole;
  requireOpen(scope, (await readBounds(warehouse)).closedBefore);
  // As at a worker's start: a version must mean the same prices for ever.
  await admitted(checkPriceBook(warehouse, book));
  const spans = await readDimensionSpans(warehouse, scope);
  for (const { billingDimension, first } of spans) requirePrice(book, scope.accountId, billingDimension, first);
  // Only now, so that a book that lacks a price can be fixed and used under the same version.
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
      // All of them: an event that has its new cost already need not have been marked. Also those of a month that is being dropped:
      // its rollup rows are final, and the mark changes nothing there.
      // The bounds are read after the insert, as by a worker.
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

/** @throws CommandError when the window begins before this bound */
function requireOpen({ window }: RepricingScope, before: EpochMs): void {
  if (window.startTime >= before) return;
  throw new CommandError(
    `months before ${formatTimestamp(before)} are closed, and their prices stay, but for events that were re-priced before they were ` +
      'closed; begin there or later with --from',
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
 * The row that gives the event its cost under the book: the same event with the next price revision, so that it replaces
 * the row of now and is itself replaced by any higher revision of the producer, in either order of arrival. Undefined when
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
      'add an earlier price to the book, or begin later with --from',
  );
}

/** What changes in money in one dimension, or in all. Amounts are in USD, scaled by 10^12. */
interface Sum {
  readonly events: number;
  readonly changed: number;
  readonly before: bigint;
  readonly after: bigint;
}

const NOTHING: Sum = { events: 0, changed: 0, before: 0n, after: 0n };

/** What re-pricing changes in money, by billing dimension. */
export class CostChanges {
  readonly #sums = new Map<BillingDimension | 'total', Sum>();

  /** @param before, after USD scaled by 10^12 */
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

  /** Dimensions with events, in the catalog's order. */
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

/** The events that count in the window: how many there are, how many have another cost, and the amounts as exact text, in USD. */
export interface CostChange extends Pick<Sum, 'events' | 'changed'> {
  readonly billingDimension: BillingDimension | 'total';
  readonly before: string;
  readonly after: string;
  readonly difference: string;
}
