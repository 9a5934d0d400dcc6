/** Makes a batch of intakes durable, whatever it takes. */

import { Outage } from '@meterline/service';
import {
  isContentError,
  type PreparedInsert,
  prepareRejectedEvents,
  prepareUsageEvents,
  type RejectedEvent,
  repairCells,
  type Warehouse,
} from '@meterline/warehouse';
import type { Logger } from 'pino';
import { type AcceptedEvent, type Intake, refusedByStorage } from './intake.js';
import { retryUntilDone } from './retry.js';

const BACKOFF = { firstMs: 200, maxMs: 10_000 };

interface Row {
  readonly job: Intake['job'];
  readonly event: AcceptedEvent;
}

export class EventStore {
  readonly #warehouse: Warehouse;
  readonly #log: Logger;
  readonly #outage: Outage;
  readonly #signal: AbortSignal;

  /** @param signal ends the retries; what is not durable by then stays in the queue */
  constructor(warehouse: Warehouse, log: Logger, signal: AbortSignal) {
    this.#warehouse = warehouse;
    this.#log = log;
    this.#outage = new Outage(log, 'ClickHouse', 'jobs stay in the queue until it does');
    this.#signal = signal;
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
    await this.#keepRejected(batch.flatMap((intake) => intake.rejected));
    const rows = batch.flatMap(({ job, accepted }) => accepted.map((event) => ({ job, event })));
    const refused = rows.length > 0 ? await this.#insert(rows) : [];
    if (refused.length > 0) await this.#refuse(refused);
    const stored = rows.map(({ event }) => event.priced);
    await this.#untilDone(
      (warehouse) => repairCells(warehouse, stored),
      () => true,
    );
  }

  /**
   * A batch that is refused for its content is halved until the culprits stand alone; their neighbours go in.
   * @returns the culprits
   */
  async #insert(rows: readonly Row[]): Promise<RejectedEvent[]> {
    try {
      const insert = prepareUsageEvents(rows.map(({ event }) => event.priced));
      await this.#untilDone(insert, (error) => !isContentError(error));
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
    this.#log.error(
      { event: 'refused_by_storage', events: events.length, first: events[0] },
      'ClickHouse refused events; they are in rejected_events',
    );
  }

  /** Has no culprit to look for: any text fits the table, so every failure is an outage. */
  async #keepRejected(events: readonly RejectedEvent[]): Promise<void> {
    if (events.length > 0) await this.#untilDone(prepareRejectedEvents(events), () => true);
  }

  async #untilDone(work: PreparedInsert, worthwhile: (error: unknown) => boolean): Promise<void> {
    await retryUntilDone(() => work(this.#warehouse), {
      backoff: BACKOFF,
      signal: this.#signal,
      worthwhile,
      onFailure: (error) => this.#outage.failed(error),
    });
    this.#outage.recovered();
  }
}
