/** Accounts for the memory of jobs in progress, and derives how many may be processed concurrently. */

export interface WorkLimits {
  /** Maximum number of jobs. */
  readonly concurrency: number;
  /** Maximum size of the jobs' data, in characters. Late jobs may take as much again. One more job is always taken. */
  readonly maxData: number;
}

export class WorkInProgress {
  readonly #limits: WorkLimits;
  readonly #onConcurrency: (concurrency: number) => void;
  #jobs = 0;
  #data = 0;
  #lateJobs = 0;
  #lateData = 0;

  /** @param onConcurrency receives the number of jobs that may be in progress, after each change */
  constructor(limits: WorkLimits, onConcurrency: (concurrency: number) => void) {
    this.#limits = limits;
    this.#onConcurrency = onConcurrency;
  }

  get isEmpty(): boolean {
    return this.#jobs === 0;
  }

  /** Whether another late job may be stored. Late jobs take at most half of the places; the other half is for current jobs. */
  get hasRoomForLate(): boolean {
    const { concurrency, maxData } = this.#limits;
    return this.#lateJobs < concurrency / 2 && this.#lateData <= maxData;
  }

  begin(data: number): void {
    this.#jobs += 1;
    this.#data += data;
    this.#update();
  }

  end(data: number): void {
    this.#jobs -= 1;
    this.#data -= data;
    this.#update();
  }

  /** Counts a job's data as late while it is stored. That is slow, and must not keep current jobs from being taken. */
  async asLate(data: number, store: () => Promise<void>): Promise<void> {
    this.#lateJobs += 1;
    this.#lateData += data;
    this.#data -= data;
    this.#update();
    try {
      await store();
    } finally {
      this.#lateJobs -= 1;
      this.#lateData -= data;
      this.#data += data;
    }
  }

  #update(): void {
    const { concurrency, maxData } = this.#limits;
    this.#onConcurrency(this.#data > maxData ? Math.min(concurrency, Math.max(1, this.#jobs)) : concurrency);
  }
}
