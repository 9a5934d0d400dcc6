import { setTimeout as sleep } from 'node:timers/promises';
import type { RunningServer } from '../engine/host-process.js';
import { describeExit, type ServerExit } from '../engine/readiness.js';

type Running = Pick<RunningServer, 'exited' | 'stop'>;

const FIRST_DELAY_MS = 500;
const LONGEST_DELAY_MS = 30_000;
/** A process that ran at least this long is restarted with the first delay. */
const STABLE_MS = 60_000;

/**
 * Restarts a server or service whenever it ends by itself, with growing delays.
 *
 * A failure at the first start is a fault of the set-up: it rejects and is not retried.
 */
export class Supervised<T extends Running> {
  readonly #stopping = new AbortController();
  readonly #watching: Promise<void>;
  #current: T;

  private constructor(
    private readonly name: string,
    private readonly launch: (previous?: T) => Promise<T>,
    first: T,
    private readonly say: (line: string) => void,
  ) {
    this.#current = first;
    this.#watching = this.#watch();
  }

  /** @param launch called at a restart with the process that has ended, so that it can use the same ports */
  static async start<T extends Running>(
    name: string,
    launch: (previous?: T) => Promise<T>,
    say: (line: string) => void,
  ): Promise<Supervised<T>> {
    return new Supervised(name, launch, await launch(), say);
  }

  get current(): T {
    return this.#current;
  }

  async stop(): Promise<void> {
    this.#stopping.abort();
    await this.#current.stop();
    await this.#watching;
  }

  async #watch(): Promise<void> {
    const { signal } = this.#stopping;
    let delay = FIRST_DELAY_MS;
    let startedAt = Date.now();
    for (;;) {
      const exit: ServerExit = await this.#current.exited;
      if (signal.aborted) return;
      if (Date.now() - startedAt >= STABLE_MS) delay = FIRST_DELAY_MS;
      this.say(`${this.name} ended unexpectedly (${describeExit(exit)}); restarting it in ${delay / 1000} s.`);

      for (let started = false; !started; ) {
        await sleep(delay, undefined, { signal }).catch(() => undefined);
        if (signal.aborted) return;
        delay = Math.min(delay * 2, LONGEST_DELAY_MS);
        started = await this.#restart(delay);
      }
      startedAt = Date.now();
      if (signal.aborted) return await this.#current.stop();
      this.say(`${this.name} is back.`);
    }
  }

  async #restart(nextDelay: number): Promise<boolean> {
    try {
      this.#current = await this.launch(this.#current);
      return true;
    } catch (error) {
      const reason = error instanceof Error ? error.message : String(error);
      this.say(`${this.name} does not start; next attempt in ${nextDelay / 1000} s. ${reason}`);
      return false;
    }
  }
}
