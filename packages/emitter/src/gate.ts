/**
 * Holds events back while they are not taken: all of them while nobody answers, or those of one account. It opens by itself after a
 * pause, which is longer each time until something is taken.
 */
import type { Batch } from './backlog.js';

const FIRST_PAUSE_MS = 50;

/** The events of a batch that are of one lane. */
export interface Parcel extends Batch {
  readonly lane: string;
  isTried: boolean;
}

export class Gate {
  /** Whether somebody was told why it is closed. */
  isReported = false;
  readonly #longestMs: number;
  readonly #release: (parcels: readonly Parcel[]) => void;
  readonly #waiting: Parcel[] = [];
  #pauseMs = 0;
  #timer: NodeJS.Timeout | undefined;

  /** @param release is given what was held when it opens */
  constructor(longestMs: number, release: (parcels: readonly Parcel[]) => void) {
    this.#longestMs = longestMs;
    this.#release = release;
  }

  get isClosed(): boolean {
    return this.#timer !== undefined;
  }

  /** @returns for how long, in milliseconds; 0 if it is closed already */
  close(atLeastMs: number): number {
    if (this.#timer) return 0;
    this.#pauseMs = Math.min(Math.max(FIRST_PAUSE_MS, 2 * this.#pauseMs), this.#longestMs);
    // So that not all producers come back at the same moment.
    const jitter = 1 + Math.random() / 4;
    const ms = Math.max(atLeastMs, this.#pauseMs) * jitter;
    this.#timer = setTimeout(() => this.#open(), ms);
    return ms;
  }

  hold(parcel: Parcel): void {
    this.#waiting.push(parcel);
  }

  /** Events were taken. One that is closed stays so for its time: it may have been asked for. */
  reset(): void {
    this.#pauseMs = 0;
    this.isReported = false;
  }

  stop(): void {
    clearTimeout(this.#timer);
  }

  #open(): void {
    this.#timer = undefined;
    this.#release(this.#waiting.splice(0));
  }
}
