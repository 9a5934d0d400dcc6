/** Stores batches of checked jobs in ClickHouse. Retries for as long as an outage lasts. */
import type { EpochMs } from '@meterline/catalog';
import { Outage, retryUntilDone } from '@meterline/service';
import {
  clickHouseFailureKind,
  isContentError,
  markDirtyHours,
  type PreparedInsert,
  prepareRejectedEvents,
  prepareUsageEvents,
  type RejectedEvent,
  readBounds,
  type Warehouse,
} from '@meterline/warehouse';
import { context, ROOT_CONTEXT, SpanStatusCode, type Tracer, trace } from '@opentelemetry/api';
import type { Logger } from 'pino';
import type { Counter } from 'prom-client';
import { type PreparedJob, rejectedLater, separateTooOld, tooOldBefore } from './intake.js';
import type { IngestMetrics, InsertedTable } from './metrics.js';

const BACK_OFF = { firstMs: 200, longestMs: 10_000 };

type Part = Pick<PreparedJob, 'job' | 'accepted'>;

export interface EventStoreOptions {
  readonly warehouse: Warehouse;
  readonly log: Logger;
  /** Aborting this signal ends the retries. Jobs that are not durable by then stay in the queue. */
  readonly signal: AbortSignal;
  readonly metrics: IngestMetrics;
  readonly tracer: Tracer;
}

export class EventStore {
  readonly #options: EventStoreOptions;
  readonly #outage: Outage;

  constructor(options: EventStoreOptions) {
    this.#options = options;
    this.#outage = new Outage(options.log, 'ClickHouse', 'jobs stay in the queue until it does');
  }

  get isClickHouseAway(): boolean {
    return this.#outage.isOn;
  }

  /**
   * Stores a batch in the numbered steps below, which docs/guarantees.md refers to. Resolves when every row is durable, and the hours of
   * late events are marked as dirty. Only then does the caller acknowledge the jobs. A crash at any point leaves the jobs in the queue, and
   * their redelivery runs all steps again.
   * @throws when the signal is aborted, or if there is a bug
   */
  async store(batch: readonly PreparedJob[]): Promise<void> {
    await this.#traced(batch, async () => {
      // 1. Store the events that validation rejected. A failure before step 2 leaves them in rejected_events. The redelivery writes the
      //    same rows with the same keys: the receipt time, ID, position and payload.
      const rejected = batch.flatMap((prepared) => prepared.rejected);
      await this.#keepRejected(rejected);

      // 2. Store the accepted events. A failure before step 3 leaves all or some of them in usage_events. The table keeps one row per
      //    event, so the redelivery changes nothing.
      const parts = batch.filter(({ accepted }) => accepted.length > 0);
      const byStorage = await this.#insertAccepted(parts);

      // 3. Store as rejected: the events that ClickHouse rejected, and the events whose month is being dropped. The bounds are read after
      //    step 2 (see retention.ts and dirty-hours.ts). A failure before step 4 leaves all these rows, which the redelivery writes again.
      //    Until step 4, queries of rollup rows miss late events, which is correct, because they are not acknowledged yet.
      await this.#keepRejectedByStorage(byStorage);
      const { hourly, droppingBefore } = await this.#readBounds();
      const { accepted, tooOld } = await this.#rejectTooOld(parts, byStorage, droppingBefore);

      // 4. Mark the hours of late events (below the watermark) as dirty, so that queries read these hours from the events. A failure before
      //    step 5 leaves marks, which cost a recomputation. The redelivery marks the hours again.
      await this.#markDirtyHours(accepted, hourly.sealingUntil);

      // 5. The caller acknowledges the jobs. After a failure before that, the redelivery changes nothing.
      this.#count(rowsOf(parts) - byStorage.length - tooOld.length, [...rejected, ...byStorage, ...tooOld]);
    });
  }

  /** Runs the work in a span of its own. The span links to the spans of all the jobs, because it belongs to no single job. */
  async #traced(batch: readonly PreparedJob[], store: () => Promise<void>): Promise<void> {
    const links = batch.flatMap(({ job }) => (job.span ? [{ context: job.span }] : []));
    const span = this.#options.tracer.startSpan('insert', { links }, ROOT_CONTEXT);
    try {
      await context.with(trace.setSpan(ROOT_CONTEXT, span), store);
    } catch (error) {
      span.setStatus({ code: SpanStatusCode.ERROR });
      throw error;
    } finally {
      span.setAttribute('meterline.jobs', batch.length).end();
    }
  }

  /** Retries every failure, because the table accepts any string. So a failure can only be an outage. */
  async #keepRejected(events: readonly RejectedEvent[]): Promise<void> {
    if (events.length === 0) return;
    await this.#insert('rejected_events', events.length, prepareRejectedEvents(events));
  }

  /**
   * If ClickHouse rejects the content, splits the batch in halves until each rejected event is alone. Stores all others, and returns the
   * rejected events.
   */
  async #insertAccepted(parts: readonly Part[]): Promise<RejectedEvent[]> {
    if (parts.length === 0) return [];
    try {
      const insert = prepareUsageEvents(parts.map(({ accepted }) => accepted));
      await this.#insert('usage_events', rowsOf(parts), insert, (error) => isOutage(error) && !isContentError(error));
      return [];
    } catch (error) {
      if (!isContentError(error)) throw error;
      const [only, ...others] = parts;
      if (only && others.length === 0 && only.accepted.length === 1) {
        return rejectedLater(only.job, only.accepted, { reason: 'rejected_by_storage', message: error.message });
      }
      const [left, right] = halves(parts);
      return (await this.#insertAccepted(left)).concat(await this.#insertAccepted(right));
    }
  }

  /** Logs only the first event of a batch, because the log would be full if the schema rejected every event. */
  async #keepRejectedByStorage(events: readonly RejectedEvent[]): Promise<void> {
    const [first] = events;
    if (!first) return;
    await this.#keepRejected(events);
    const { jobId, position, accountId, message: reason } = first;
    this.#options.log.error(
      { event: 'rejected_by_storage', events: events.length, first: { jobId, position, accountId }, reason },
      'ClickHouse rejected events; they are in rejected_events',
    );
  }

  #readBounds() {
    const { warehouse, metrics } = this.#options;
    return this.#retried(() => readBounds(warehouse), metrics.boundRetries);
  }

  /**
   * Stores as rejected the events whose months are being dropped, except those in `byStorage`, which are stored as rejected already.
   * Returns the stored events, and the parts without any event of these months.
   */
  async #rejectTooOld(
    parts: readonly Part[],
    byStorage: readonly RejectedEvent[],
    droppingBefore: EpochMs,
  ): Promise<{ accepted: readonly Part[]; tooOld: readonly RejectedEvent[] }> {
    const divided = parts.map(({ job, accepted: rows }) => ({ job, ...separateTooOld(rows, droppingBefore) }));
    const known = new Set(byStorage.map(keyOf));
    const tooOld = divided
      .flatMap(({ job, tooOld: rows }) => rejectedLater(job, rows, tooOldBefore(droppingBefore)))
      .filter((event) => !known.has(keyOf(event)));
    await this.#keepRejected(tooOld);
    return { accepted: divided.filter(({ accepted }) => accepted.length > 0), tooOld };
  }

  async #markDirtyHours(parts: readonly Part[], sealingUntil: EpochMs): Promise<void> {
    if (parts.length === 0) return;
    const { warehouse, metrics } = this.#options;
    const events = parts.map(({ accepted }) => accepted);
    const dirty = await this.#retried(() => markDirtyHours(warehouse, events, sealingUntil), metrics.markRetries);
    metrics.hoursMarked.inc(dirty.reduce((sum, { hours }) => sum + hours.length, 0));
  }

  #count(accepted: number, rejected: readonly RejectedEvent[]): void {
    const { eventsAccepted, eventsRejected } = this.#options.metrics;
    eventsAccepted.inc(accepted);
    for (const { reason } of rejected) eventsRejected.inc({ reason });
  }

  async #insert(
    table: InsertedTable,
    rows: number,
    insert: PreparedInsert,
    isWorthwhile?: (error: unknown) => boolean,
  ): Promise<void> {
    const { warehouse, metrics } = this.#options;
    const attempt = async () => {
      const started = performance.now();
      await insert(warehouse);
      return (performance.now() - started) / 1000;
    };
    const seconds = await this.#retried(attempt, metrics.insertRetries.labels({ table }), isWorthwhile);
    metrics.insertDuration.observe({ table }, seconds);
    metrics.insertedRows.inc({ table }, rows);
  }

  async #retried<T>(
    work: () => Promise<T>,
    failures: Pick<Counter.Internal, 'inc'>,
    isWorthwhile: (error: unknown) => boolean = isOutage,
  ): Promise<T> {
    const done = await retryUntilDone(work, {
      backOff: BACK_OFF,
      signal: this.#options.signal,
      isWorthwhile,
      onFailure: (error) => {
        failures.inc();
        this.#outage.failed(error);
      },
    });
    this.#outage.recovered();
    return done;
  }
}

function isOutage(error: unknown): boolean {
  return clickHouseFailureKind(error) !== 'defect';
}

function keyOf({ jobId, position }: RejectedEvent): string {
  return `${position} ${jobId}`;
}

function rowsOf(parts: readonly Part[]): number {
  return parts.reduce((rows, { accepted }) => rows + accepted.length, 0);
}

function halves(parts: readonly Part[]): [Part[], Part[]] {
  const [only, ...others] = parts;
  if (!only || others.length > 0) return [parts.slice(0, parts.length >> 1), parts.slice(parts.length >> 1)];
  const { job, accepted } = only;
  const rows = Array.from({ length: accepted.length }, (_, row) => row);
  const part = (from: number, to?: number) => [{ job, accepted: accepted.pick(rows.slice(from, to)) }];
  return [part(0, rows.length >> 1), part(rows.length >> 1)];
}
