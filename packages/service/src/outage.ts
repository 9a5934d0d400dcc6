import type { Logger } from 'pino';
import { onceAMinute } from './log.js';

interface CurrentOutage {
  readonly since: number;
  failures: number;
  readonly warn: (error: unknown) => void;
}

/**
 * Logs an outage when it begins, once a minute while it lasts, and when it is over, however many attempts fail in
 * between.
 */
export class Outage {
  readonly #log: Logger;
  readonly #server: string;
  readonly #consequence: string;
  readonly #clock: () => number;
  #current: CurrentOutage | undefined;

  /** @param consequence of the outage until the server answers: "jobs stay in the queue until it does" */
  constructor(log: Logger, server: string, consequence: string, clock: () => number = Date.now) {
    this.#log = log;
    this.#server = server;
    this.#consequence = consequence;
    this.#clock = clock;
  }

  get isOn(): boolean {
    return this.#current !== undefined;
  }

  failed(error: unknown): void {
    this.#current ??= this.#begin();
    this.#current.failures += 1;
    this.#current.warn(error);
  }

  recovered(): void {
    if (!this.#current) return;
    const { failures } = this.#current;
    const seconds = this.#secondsOf(this.#current);
    this.#log.info({ event: 'outage_over', server: this.#server, failures, seconds }, `${this.#server} answers again`);
    this.#current = undefined;
  }

  #begin(): CurrentOutage {
    const warn = (err: unknown) => {
      this.#log.warn(
        { event: 'outage', server: this.#server, failures: outage.failures, seconds: this.#secondsOf(outage), err },
        `${this.#server} does not answer; ${this.#consequence}`,
      );
    };
    const outage: CurrentOutage = { since: this.#clock(), failures: 0, warn: onceAMinute(warn, this.#clock) };
    return outage;
  }

  #secondsOf({ since }: CurrentOutage): number {
    return (this.#clock() - since) / 1000;
  }
}
