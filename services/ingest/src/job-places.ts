/**
 * How many jobs a worker may have in work at once.
 *
 * It follows the size of the jobs that arrive, so that memory stays bounded whatever that is. And it begins low after the queue
 * was empty, for the sake of BullMQ's own loop: that begins none of the jobs that it takes, one after the other, before it has as many as
 * there are places; nor are their locks renewed until then. With 350 places, on a busy machine, locks were lost before their jobs were
 * begun.
 */
import { tooManyBytes } from '@meterline/catalog';

/** One more than one job can take. */
const LEAST_JOBS = 2;
/** After the queue was empty, so many may be taken before the first of them is begun; then so many more for each that is. */
const FIRST_JOBS = 16;
const JOBS_PER_BEGUN = 2;
/** How fast the typical size falls: after a large job, some hundred small ones bring it down again. */
const SIZE_DECAY = 0.99;

export interface JobPlacesOptions {
  readonly concurrency: () => number;
  /** About how much job data may be in work at once. */
  readonly maxBytesInWork: () => number;
}

export class JobPlaces {
  readonly #options: JobPlacesOptions;
  #typicalBytes = 0;
  #begun = 0;
  #ramped = FIRST_JOBS;

  constructor(options: JobPlacesOptions) {
    this.#options = options;
  }

  /** For jobs of the typical size. Shares of the places are shares of these. */
  get most(): number {
    const { concurrency, maxBytesInWork } = this.#options;
    return Math.min(concurrency(), Math.max(LEAST_JOBS, Math.floor(maxBytesInWork() / this.#typicalBytes)));
  }

  /** So many may be in work now. */
  get now(): number {
    return Math.min(this.most, this.#ramped);
  }

  /** @param bytes of the data of a job that was taken from the queue */
  taken(bytes: number): void {
    // Oversized ones count by themselves: one at a time.
    this.#typicalBytes = Math.max(tooManyBytes(bytes) ? 0 : bytes, this.#typicalBytes * SIZE_DECAY);
  }

  begun(): void {
    this.#begun += 1;
    this.#ramped = Math.min(this.most, this.#ramped + JOBS_PER_BEGUN);
  }

  ended(): void {
    this.#begun -= 1;
  }

  /** The queue is empty. */
  foundNoMore(): void {
    this.#ramped = this.#begun + FIRST_JOBS;
  }
}
