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

export interface Gate {
  /** Whether somebody was told why it is closed. */
  isReported: boolean;
  isClosed(): boolean;
  /**
   * Keeps events until it opens, and closes it if it is open.
   * @param atLeastMs that it is closed then
   * @returns for how long it was closed now, in milliseconds; 0 if it was closed already
   */
  hold(parcel: Parcel, atLeastMs?: number): number;
  /** Events were taken. One that is closed stays so for its time: it may have been asked for. */
  reset(): void;
  stop(): void;
}

/** @param release is given what was held when it opens */
export function newGate(longestMs: number, release: (parcels: readonly Parcel[]) => void): Gate {
  const held: Parcel[] = [];
  let pauseMs = 0;
  let timer: NodeJS.Timeout | undefined;

  function open(): void {
    timer = undefined;
    release(held.splice(0));
  }

  return {
    isReported: false,
    isClosed: () => timer !== undefined,
    hold: (parcel, atLeastMs = 0) => {
      held.push(parcel);
      if (timer) return 0;
      pauseMs = Math.min(Math.max(FIRST_PAUSE_MS, 2 * pauseMs), longestMs);
      // So that not all producers come back at the same moment.
      const jitter = 1 + Math.random() / 4;
      const ms = Math.max(atLeastMs, pauseMs) * jitter;
      timer = setTimeout(open, ms);
      return ms;
    },
    reset() {
      pauseMs = 0;
      this.isReported = false;
    },
    stop: () => clearTimeout(timer),
  };
}
