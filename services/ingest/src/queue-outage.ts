/** What a worker of a queue makes of errors: whether Redis is away, and when it is back. */
import { setTimeout as delay } from 'node:timers/promises';
import { Outage, onceAMinute } from '@meterline/service';
import type { Worker } from 'bullmq';
import type { Logger } from 'pino';
import { isConnectionError, type QueueConnection } from './queue-connection.js';

const PROBE_EVERY_MS = 500;
const ANSWER_WITHIN_MS = 2_000;

export class QueueOutage {
  readonly #connection: QueueConnection;
  /** A key of the queue, for a question that any answer will do for. */
  readonly #key: string;
  readonly #log: Logger;
  readonly #logQueueError: (err: Error) => void;
  readonly #outage: Outage;
  readonly #closing = new AbortController();
  #isProbing = false;
  #isAsking = false;

  /** Listens from now on. */
  constructor(worker: Worker, connection: QueueConnection, log: Logger) {
    this.#connection = connection;
    this.#key = worker.toKey('meta');
    this.#log = log;
    this.#outage = new Outage(log, 'Redis', 'jobs stay in the queue until it does');
    // The same error may come with every attempt to take a job.
    this.#logQueueError = onceAMinute((err) => {
      log.error({ event: 'queue_error', err }, 'The queue answered with an error');
    });
    worker.on('error', (error) => this.#onWorkerError(error));
    // Of a Redis Cluster, any of them; what is sent to it waits and reports nothing.
    connection.redis.on('node error', (error: Error) => void this.#onNodeError(error));
  }

  /** Whether Redis is away and the worker waits for its return. */
  get isOn(): boolean {
    return this.#outage.isOn;
  }

  /** Redis has answered. */
  recovered(): void {
    this.#outage.recovered();
  }

  close(): void {
    this.#closing.abort();
  }

  /** BullMQ reports many things as errors. Only those of the connection mean an outage. */
  #onWorkerError(error: Error & { readonly code?: unknown }): void {
    if (isConnectionError(error)) {
      this.#outage.failed(error);
      void this.#noticeReturn();
    } else if (typeof error.code === 'number') {
      // A refusal by BullMQ's scripts. The usual one is a lost lock: another worker has the job then.
      this.#log.debug({ event: 'queue_refusal', err: error }, 'The queue refused a call');
    } else {
      this.#logQueueError(error);
    }
  }

  /** An outage if the queue does not answer either. */
  async #onNodeError(error: Error): Promise<void> {
    if (this.#isAsking || this.isOn) return;
    this.#isAsking = true;
    const late = delay(ANSWER_WITHIN_MS, 'late', { signal: this.#closing.signal });
    const isAway = await Promise.race([this.#connection.redis.exists(this.#key), late]).then(
      (first) => first === 'late',
      () => false,
    );
    this.#isAsking = false;
    if (!isAway) return;
    this.#outage.failed(error);
    void this.#noticeReturn();
  }

  /** While the queue is empty, no job shows that Redis is back. */
  async #noticeReturn(): Promise<void> {
    if (this.#isProbing) return;
    this.#isProbing = true;
    while (this.isOn && !this.#closing.signal.aborted) {
      try {
        await this.#connection.redis.exists(this.#key);
        this.#outage.recovered();
      } catch {
        await delay(PROBE_EVERY_MS, undefined, { signal: this.#closing.signal }).catch(() => undefined);
      }
    }
    this.#isProbing = false;
  }
}
