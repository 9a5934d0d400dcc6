/** Makes a batch of intakes durable, whatever it takes. */
import { Outage } from '@meterline/service';
import {
  GRAINS,
  isContentError,
  type PreparedInsert,
  type PricedEvent,
  prepareRejectedEvents,
  prepareUsageEvents,
  type RejectedEvent,
  repairCells,
  type Warehouse,
} from '@meterline/warehouse';
import { context, ROOT_CONTEXT, SpanStatusCode, type Tracer, trace } from '@opentelemetry/api';
import type { Logger } from 'pino';
import { type AcceptedEvent, type Intake, refusedByStorage } from './intake.js';
import type { IngestMetrics, InsertedTable } from './metrics.js';
import { retryUntilDone } from './retry.js';

const BACKOFF = { firstMs: 200, maxMs: 10_000 };

interface Row {
  readonly job: Intake['job'];
  readonly event: AcceptedEvent;
}

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

  /** Whether ClickHouse is away and rows wait for its return. */
  get isWaiting(): boolean {
    return this.#outage.isOn;
  }

  /**
   * Resolves when every row of the batch is durable and every sealed cell that it belongs to holds it. Crash order: a
   * crash anywhere in here leaves jobs unacknowledged; their redelivery inserts the same rows again, of which the tables
   * keep one of each, and recomputes the cells again.
   * @throws when the signal is aborted, or the error of a defect of ours
   */
  async store(batch: readonly Intake[]): Promise<void> {
    await this.#traced(batch, async () => {
      const rejected = batch.flatMap((intake) => intake.rejected);
      await this.#keepRejected(rejected);
      const rows = batch.flatMap(({ job, accepted }) => accepted.map((event) => ({ job, event })));
      const refused = rows.length > 0 ? await this.#insert(rows) : [];
      if (refused.length > 0) await this.#refuse(refused);
      await this.#repair(rows.map(({ event }) => event.priced));
      this.#count(rows.length - refused.length, [...rejected, ...refused]);
    });
  }

  /** A span of its own, linked to those of all the jobs: it belongs to none of them alone. */
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

  #count(accepted: number, rejected: readonly RejectedEvent[]): void {
    const { eventsAccepted, eventsRejected } = this.#options.metrics;
    eventsAccepted.inc(accepted);
    for (const { reason } of rejected) eventsRejected.inc({ reason });
  }

  /**
   * A batch that is refused for its content is halved until the culprits stand alone; their neighbours go in.
   * @returns the culprits
   */
  async #insert(rows: readonly Row[]): Promise<RejectedEvent[]> {
    try {
      const insert = prepareUsageEvents(rows.map(({ event }) => event.priced));
      await this.#untilDone('usage_events', rows.length, insert, (error) => !isContentError(error));
      return [];
    } catch (error) {
      if (!isContentError(error)) throw error;
      const [only, ...others] = rows;
      if (only && others.length === 0) return [refusedByStorage(only.job, only.event, error.message)];
      const middle = rows.length >> 1;
      const left = await this.#insert(rows.slice(0, middle));
      return left.concat(await this.#insert(rows.slice(middle)));
    }
  }

  /** Told once for a batch, with its first culprit: should the schema refuse everything, the log must not fill up. */
  async #refuse(events: readonly RejectedEvent[]): Promise<void> {
    await this.#keepRejected(events);
    const [first] = events;
    this.#options.log.error(
      {
        event: 'refused_by_storage',
        events: events.length,
        first: first && { jobId: first.jobId, position: first.position, accountId: first.accountId },
        reason: first?.message,
      },
      'ClickHouse refused events; they are in rejected_events',
    );
  }

  /** Has no culprit to look for: any text fits the table, so every failure is an outage. */
  async #keepRejected(events: readonly RejectedEvent[]): Promise<void> {
    if (events.length === 0) return;
    await this.#untilDone('rejected_events', events.length, prepareRejectedEvents(events), () => true);
  }

  async #untilDone(
    table: InsertedTable,
    rows: number,
    insert: PreparedInsert,
    worthwhile: (error: unknown) => boolean,
  ): Promise<void> {
    const { warehouse, metrics } = this.#options;
    const insertRetried = () => metrics.insertRetries.inc({ table });
    const seconds = await this.#retried(() => timed(() => insert(warehouse)), insertRetried, worthwhile);
    metrics.insertDuration.observe({ table }, seconds);
    metrics.insertedRows.inc({ table }, rows);
  }

  /** Recomputes what sealed cells hold of the events, which are durable. */
  async #repair(events: readonly PricedEvent[]): Promise<void> {
    if (events.length === 0) return;
    const { warehouse, metrics } = this.#options;
    const repaired = await this.#retried(
      () => repairCells(warehouse, events),
      () => metrics.cellRepairRetries.inc(),
      () => true,
    );
    for (const grain of GRAINS) metrics.cellsRepaired.inc({ grain }, repaired[grain]);
  }

  async #retried<T>(
    work: () => Promise<T>,
    onFailure: () => void,
    worthwhile: (error: unknown) => boolean,
  ): Promise<T> {
    const done = await retryUntilDone(work, {
      backoff: BACKOFF,
      signal: this.#options.signal,
      worthwhile,
      onFailure: (error) => {
        onFailure();
        this.#outage.failed(error);
      },
    });
    this.#outage.recovered();
    return done;
  }
}

/** @returns how many seconds it took */
async function timed(work: () => Promise<void>): Promise<number> {
  const started = performance.now();
  await work();
  return (performance.now() - started) / 1000;
}
