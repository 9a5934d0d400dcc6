/** Tracks the memory of jobs in progress, and limits how many jobs may be processed concurrently. */

export interface WorkLimits {
  readonly concurrency: number;
  /** Maximum total size of the jobs' data, in characters. Late jobs may use as much again. A single job may exceed the limit. */
  readonly maxData: number;
}

export class WorkInProgress {
  readonly #limits: WorkLimits;
  readonly #onConcurrency: (concurrency: number) => void;
  #jobs = 0;
  #data = 0;
  #lateJobs = 0;
  #lateData = 0;

  /** @param onConcurrency called after each change with the number of jobs that may be in progress */
  constructor(limits: WorkLimits, onConcurrency: (concurrency: number) => void) {
    this.#limits = limits;
    this.#onConcurrency = onConcurrency;
  }

  get isEmpty(): boolean {
    return this.#jobs === 0;
  }

  /** True if another late job may be stored. Late jobs may be at most half of the concurrent jobs, so the other half is for current jobs. */
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

  /** Counts a job's data as late while it is stored. Storing late data is slow, and must not stop the worker from taking current jobs. */
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
