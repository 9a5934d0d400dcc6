/**
 * A worker for each queue of events: for as many as QUEUE_SHARDS says, and for every further one that there is. Producers may
 * be configured with more queues before the workers are, and fewer queues leave no job behind.
 */
import type { Logger } from 'pino';
import type { UsageWorker } from './usage-worker.js';

const LOOK_EVERY_MS = 5_000;

export interface UsageWorkersOptions {
  readonly shards: number;
  /** @param share of what the process may have in work */
  readonly open: (shard: number, share: () => number) => UsageWorker;
  /** The queues to which a job was ever added. */
  readonly find: () => Promise<readonly number[]>;
  readonly log: Logger;
}

export class UsageWorkers {
  readonly #options: UsageWorkersOptions;
  readonly #workers = new Map<number, UsageWorker>();
  #looking: NodeJS.Timeout | undefined;
  #isClosed = false;

  constructor(options: UsageWorkersOptions) {
    this.#options = options;
    for (let shard = 0; shard < options.shards; shard += 1) this.#open(shard);
  }

  /** By the number of their queue. */
  get all(): ReadonlyMap<number, UsageWorker> {
    return this.#workers;
  }

  /** Whether any of them waits for Redis. */
  get isWaiting(): boolean {
    return [...this.#workers.values()].some((worker) => worker.isWaiting);
  }

  run(): void {
    for (const worker of this.#workers.values()) worker.run();
    void this.#look();
  }

  #open(shard: number): UsageWorker {
    const { open, shards } = this.#options;
    const worker = open(shard, () => 1 / Math.max(shards, this.#workers.size));
    this.#workers.set(shard, worker);
    return worker;
  }

  async #look(): Promise<void> {
    const { find, log } = this.#options;
    for (const shard of await find()) {
      if (this.#workers.has(shard) || this.#isClosed) continue;
      this.#open(shard).run();
      log.warn(
        { event: 'queue_found', shard },
        'a queue beyond QUEUE_SHARDS is consumed too; producers fill or filled it',
      );
    }
    if (!this.#isClosed) this.#looking = setTimeout(() => void this.#look(), LOOK_EVERY_MS);
  }

  /** Takes no more jobs and resolves when every one in work is acknowledged or back in its queue. */
  async close(): Promise<void> {
    this.#isClosed = true;
    clearTimeout(this.#looking);
    await Promise.all([...this.#workers.values()].map((worker) => worker.close()));
  }
}
