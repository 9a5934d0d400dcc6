/**
 * Holds batches back while they are not taken: all of them while nobody answers, or those of one account. It opens by itself after a
 * pause, which doubles each time until something is taken.
 */

const FIRST_PAUSE_MS = 50;
const LONGEST_PAUSE_MS = 5_000;

export interface BackOff<T> {
  /** Whether the program was told why it waits. */
  isReported: boolean;
  isWaiting(): boolean;
  /**
   * Keeps a batch until the end of the pause, and begins one if there is none.
   * @param atLeastMs for which a pause that begins now lasts
   */
  hold(batch: T, atLeastMs: number): void;
  /** Something was taken. A pause lasts for its time all the same: it may have been asked for. */
  reset(): void;
  stop(): void;
}

/** @param release is given what was held at the end of the pause */
export function newBackOff<T>(release: (held: readonly T[]) => void): BackOff<T> {
  const held: T[] = [];
  let pauseMs = 0;
  let timer: NodeJS.Timeout | undefined;

  function end(): void {
    timer = undefined;
    release(held.splice(0));
  }

  return {
    isReported: false,
    isWaiting: () => timer !== undefined,
    hold: (batch, atLeastMs) => {
      held.push(batch);
      if (timer) return;
      pauseMs = Math.min(Math.max(FIRST_PAUSE_MS, 2 * pauseMs), LONGEST_PAUSE_MS);
      // So that not all producers come back at the same moment.
      const jitter = 1 + Math.random() / 4;
      timer = setTimeout(end, Math.max(atLeastMs, pauseMs) * jitter);
    },
    reset() {
      pauseMs = 0;
      this.isReported = false;
    },
    stop: () => clearTimeout(timer),
  };
}
