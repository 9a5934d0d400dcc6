/** Wakes those that wait for something to change. It holds no value: they look again. */
export class Signal {
  #wake: () => void = () => undefined;
  #next: Promise<void> = this.#again();

  /** Resolves at the next {@link notify}. */
  wait(): Promise<void> {
    return this.#next;
  }

  notify(): void {
    this.#wake();
    this.#next = this.#again();
  }

  #again(): Promise<void> {
    return new Promise((resolve) => {
      this.#wake = resolve;
    });
  }
}
