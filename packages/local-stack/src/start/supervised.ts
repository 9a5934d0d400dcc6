import { setTimeout as sleep } from 'node:timers/promises';
import { errorMessage } from '../errors.js';
import { describeExit, type RunningServer, type ServerExit } from '../server-process.js';

type Running = Pick<RunningServer, 'exited' | 'stop'>;

const FIRST_DELAY_MS = 500;
const LONGEST_DELAY_MS = 30_000;
/** A process that ran at least this long is restarted with the first delay. */
const STABLE_MS = 60_000;

/** Restarts a server or service that runs whenever it ends by itself, with growing delays. */
export class Supervised<T extends Running> {
  readonly #stopping = new AbortController();
  readonly #watching: Promise<void>;
  #current: T;

  /** @param relaunch called with the process that has ended, so that it can use the same ports */
  constructor(
    private readonly name: string,
    first: T,
    private readonly relaunch: (previous: T) => Promise<T>,
    private readonly say: (line: string) => void,
  ) {
    this.#current = first;
    this.#watching = this.#watch();
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
      this.#current = await this.relaunch(this.#current);
      return true;
    } catch (error) {
      this.say(`${this.name} does not start; next attempt in ${nextDelay / 1000} s. ${errorMessage(error)}`);
      return false;
    }
  }
}
