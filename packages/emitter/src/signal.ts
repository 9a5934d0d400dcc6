/** Wakes those that wait for something to change. It holds no value: they look again. */
export interface Signal {
  /** Resolves at the next {@link notify}. */
  wait(): Promise<void>;
  notify(): void;
}

export function newSignal(): Signal {
  let wake: () => void;
  let next = again();

  function again(): Promise<void> {
    return new Promise((resolve) => {
      wake = resolve;
    });
  }

  return {
    wait: () => next,
    notify: () => {
      wake();
      next = again();
    },
  };
}
