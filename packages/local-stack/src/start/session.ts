/** What has been started so far, to be stopped in reverse order whatever happens on the way. */
export interface Stoppable {
  stop(): Promise<void>;
}

export class Session {
  readonly #parts: Stoppable[] = [];

  add<T extends Stoppable>(part: T): T {
    this.#parts.push(part);
    return part;
  }

  /** Each part is stopped even if one before it fails; the first failure is reported. */
  async stop(): Promise<void> {
    const failures: unknown[] = [];
    for (let part = this.#parts.pop(); part; part = this.#parts.pop()) {
      await part.stop().catch((error: unknown) => failures.push(error));
    }
    if (failures.length > 0) throw failures[0];
  }
}
