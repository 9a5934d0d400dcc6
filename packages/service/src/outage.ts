import type { Logger } from 'pino';

const REMINDER_MS = 60_000;

/**
 * Tells of an outage once when it begins, once a minute while it lasts and once when it is over, however often the
 * attempts in between fail.
 */
export class Outage {
  readonly #log: Logger;
  readonly #server: string;
  readonly #meanwhile: string;
  readonly #clock: () => number;
  #since: number | undefined;
  #toldAt = 0;
  #failures = 0;

  /** @param meanwhile what the outage means for those who wait: "jobs stay in the queue until it does" */
  constructor(log: Logger, server: string, meanwhile: string, clock: () => number = Date.now) {
    this.#log = log;
    this.#server = server;
    this.#meanwhile = meanwhile;
    this.#clock = clock;
  }

  get isOn(): boolean {
    return this.#since !== undefined;
  }

  failed(error: unknown): void {
    const now = this.#clock();
    this.#since ??= now;
    this.#failures += 1;
    if (this.#failures > 1 && now - this.#toldAt < REMINDER_MS) return;
    this.#toldAt = now;
    this.#log.warn(
      {
        event: 'outage',
        server: this.#server,
        failures: this.#failures,
        seconds: (now - this.#since) / 1000,
        err: error,
      },
      `${this.#server} does not answer; ${this.#meanwhile}`,
    );
  }

  recovered(): void {
    if (this.#since === undefined) return;
    const seconds = (this.#clock() - this.#since) / 1000;
    this.#log.info(
      { event: 'outage_over', server: this.#server, failures: this.#failures, seconds },
      `${this.#server} answers again`,
    );
    this.#since = undefined;
    this.#failures = 0;
  }
}
