/** BullMQ's worker for the jobs that wake a sealer, but one that rests when Redis refuses. */
import { setTimeout as delay } from 'node:timers/promises';
import { Worker, type WorkerOptions } from 'bullmq';
import { isConnectionError } from './queue-connection.js';

const REST_MS = 1_000;

export interface SealingWorkerOptions extends WorkerOptions {
  /** Ends a rest. */
  readonly closing: AbortSignal;
}

export class SealingWorker extends Worker<unknown, void> {
  readonly #closing: AbortSignal;

  constructor(name: string, seal: () => Promise<void>, { closing, ...options }: SealingWorkerOptions) {
    super(name, seal, options);
    this.#closing = closing;
  }

  /** BullMQ itself asks again at once, thousands of times a second, when its user has no right to the queue. */
  protected override async moveToActive(...args: Parameters<Worker['moveToActive']>) {
    try {
      return await super.moveToActive(...args);
    } catch (error) {
      if (error instanceof Error && !isConnectionError(error)) {
        await delay(REST_MS, undefined, { signal: this.#closing }).catch(() => undefined);
      }
      throw error;
    }
  }

  /** The look for stalled jobs comes again by itself. BullMQ would rest 5 s first after an error, and not end before, though it is closed. */
  protected override checkConnectionError<T>(work: () => Promise<T>): Promise<T | undefined> {
    return super.checkConnectionError(work, 0);
  }
}
