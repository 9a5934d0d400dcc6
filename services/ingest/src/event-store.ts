/** Makes a batch of intakes durable, and tries for as long as it takes. */
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
import { divideByAge, type Intake, rejectedLater, tooOldBefore } from './intake.js';
import type { IngestMetrics, InsertedTable } from './metrics.js';

const BACK_OFF = { firstMs: 200, longestMs: 10_000 };

/** The accepted events of a job, or some of them. */
type Part = Pick<Intake, 'job' | 'accepted'>;

export interface EventStoreOptions {
  readonly warehouse: Warehouse;
  readonly log: Logger;
  /** Ends the retries; what is not durable by then stays in the queue. */
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

  /** Whether rows wait for ClickHouse. */
  get isClickHouseAway(): boolean {
    return this.#outage.isOn;
  }

  /**
   * Resolves when every row of the batch is durable and every sealed hour that one of its events belongs to is marked as
   * dirty. The jobs are acknowledged only then. So a crash at any point leaves them in the queue, and their redelivery
   * runs all steps again; docs/guarantees.md cites the numbers.
   * @throws when the signal is aborted, or the error of a defect of ours
   */
  async store(batch: readonly Intake[]): Promise<void> {
    await this.#traced(batch, async () => {
      // 1. The events that the checks rejected become durable. A failure before step 2 leaves them in rejected_events. The
      //    redelivery writes the same rows under the same keys: when the queue took the job, its id, position, payload.
      const rejected = batch.flatMap((intake) => intake.rejected);
      await this.#keepRejected(rejected);

      // 2. The accepted events become durable. A failure before step 3 leaves them in usage_events, perhaps only those of
      //    some halves of the batch. The table keeps one row of each identity, so the redelivery changes nothing.
      const parts = batch.filter(({ accepted }) => accepted.length > 0);
      const byStorage = await this.#insertAccepted(parts);

      // 3. The bounds are read: after step 2, see retention.ts and dirty-hours.ts. The events that ClickHouse rejected become durable
      //    as rejected, and so do those whose month is being dropped. A failure before step 4 leaves what step 1 leaves. Queries
      //    answer from sealed rollup rows, which lack the new events; that is not wrong before step 5.
      await this.#keepRejectedByStorage(byStorage);
      const { hourly, droppingBefore } = await this.#readBounds();
      const { accepted, tooOld } = await this.#rejectTooOld(parts, byStorage, droppingBefore);

      // 4. The hours below the watermark are marked as dirty: queries answer these from the events. A failure before step 5
      //    leaves marks, which cost a recomputation. The redelivery marks the hours again.
      await this.#markDirtyHours(accepted, hourly.sealingUntil);

      // 5. The caller acknowledges the jobs. A failure before that leaves a job whose redelivery changes nothing.
      this.#count(rowsOf(parts) - byStorage.length - tooOld.length, [...rejected, ...byStorage, ...tooOld]);
    });
  }

  /** A span of its own, linked to the spans of all the jobs: it belongs to none of them alone. */
  async #traced(batch: readonly Intake[], store: () => Promise<void>): Promise<void> {
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

  /** Any text fits the table, so every failure is an outage. */
  async #keepRejected(events: readonly RejectedEvent[]): Promise<void> {
    if (events.length === 0) return;
    await this.#insert('rejected_events', events.length, prepareRejectedEvents(events));
  }

  /**
   * A batch that ClickHouse rejects for its content is halved until the events at fault stand alone; the others are stored.
   * @returns the events at fault
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

  /** Logs one line for a batch, with its first event: should the schema reject everything, the log must not fill up. */
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
   * Keeps the events of months that are being dropped, if they are not kept as rejected already.
   * @returns these, and the parts without them
   */
  async #rejectTooOld(
    parts: readonly Part[],
    byStorage: readonly RejectedEvent[],
    droppingBefore: EpochMs,
  ): Promise<{ accepted: readonly Part[]; tooOld: readonly RejectedEvent[] }> {
    const divided = parts.map(({ job, accepted: rows }) => ({ job, ...divideByAge(rows, droppingBefore) }));
    const known = new Set(byStorage.map(keyOf));
    const tooOld = divided
      .flatMap(({ job, tooOld: rows }) => rejectedLater(job, rows, tooOldBefore(droppingBefore)))
      .filter((event) => !known.has(keyOf(event)));
    await this.#keepRejected(tooOld);
    return { accepted: divided.filter(({ accepted }) => accepted.length > 0), tooOld };
  }

  /** Marks the sealed hours that the events belong to. */
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

  /** @param isWorthwhile whether another attempt can help */
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

/** Every failure except a bug of ours, which a retry would not fix. */
function isOutage(error: unknown): boolean {
  return clickHouseFailureKind(error) !== 'defect';
}

function keyOf({ jobId, position }: RejectedEvent): string {
  return `${position} ${jobId}`;
}

function rowsOf(parts: readonly Part[]): number {
  return parts.reduce((rows, { accepted }) => rows + accepted.length, 0);
}

/** The halves of the jobs, or of the events when it is one job. */
function halves(parts: readonly Part[]): [Part[], Part[]] {
  const [only, ...others] = parts;
  if (!only || others.length > 0) return [parts.slice(0, parts.length >> 1), parts.slice(parts.length >> 1)];
  const { job, accepted } = only;
  const rows = Array.from({ length: accepted.length }, (_, row) => row);
  const part = (from: number, to?: number) => [{ job, accepted: accepted.pick(rows.slice(from, to)) }];
  return [part(0, rows.length >> 1), part(rows.length >> 1)];
}
