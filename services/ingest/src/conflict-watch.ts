/** Tells of producers that send different content under one revision. Storage is not concerned: it settles on one. */
import type { EpochMs } from '@meterline/catalog';
import type { Logger } from 'pino';
import type { Counter } from 'prom-client';
import type { Intake } from './intake.js';
import { RecentPayloads } from './recent-payloads.js';

/** A producer with this fault has it in every event. */
const INTERVAL_MS = 60_000;

export class ConflictWatch {
  readonly #recent = new RecentPayloads();
  readonly #counter: Counter;
  readonly #log: Logger;
  readonly #clock: () => EpochMs;
  #untold = 0;
  #toldAt = Number.NEGATIVE_INFINITY;

  constructor(counter: Counter, log: Logger, clock: () => EpochMs = Date.now) {
    this.#counter = counter;
    this.#log = log;
    this.#clock = clock;
  }

  /** Counts each conflict, and tells of one at most every minute, with how many there were since. */
  look({ accepted }: Intake): void {
    for (const { priced } of accepted) {
      if (!this.#recent.conflicts(priced)) continue;
      this.#counter.inc();
      this.#untold += 1;
      if (this.#clock() - this.#toldAt < INTERVAL_MS) continue;
      const { accountId, eventId, revision } = priced;
      this.#log.warn(
        { event: 'conflicting_payloads', conflicts: this.#untold, accountId, eventId, revision },
        'a producer sent different content under one revision; one of the two stays for ever',
      );
      this.#toldAt = this.#clock();
      this.#untold = 0;
    }
  }
}
