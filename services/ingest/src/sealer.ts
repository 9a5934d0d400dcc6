/**
 * Seals past hours and days. Every ingest process can. A job scheduler in Redis wakes one of them at a time, and two at
 * once would do no harm: see sealing.ts and marks.ts in packages/warehouse.
 *
 * A sealer is `idle`, `sealing` while it seals what is due, and in the end `stopped`. It seals nothing twice at once, and
 * nothing after it has stopped; both are checked at run time.
 */
import { setTimeout as delay } from 'node:timers/promises';
import { prefixIn } from '@meterline/access';
import { formatTimestamp } from '@meterline/catalog';
import { Outage, onceAMinute } from '@meterline/service';
import { GRAINS, type Grain, readWatermarks, sealNext, type Warehouse } from '@meterline/warehouse';
import { Queue, type Worker } from 'bullmq';
import type { Logger } from 'pino';
import type { IngestMetrics } from './metrics.js';
import { isConnectionError, type QueueConnection } from './queue-connection.js';
import { SealingWorker } from './sealing-worker.js';
import { serverName, shardLabel } from './shard-name.js';
import { StateMachine } from './state.js';
import { tellTooLarge } from './too-large.js';

const SEALING_QUEUE = 'meterline-sealing';
const SCHEDULER = 'seal';
/** How often the scheduler is written again: a Redis that lost it would never wake a process again. */
const RESCHEDULE_MS = 30_000;
/** How much later than the interval the next moment may be: the clocks of processes differ. An interval may change, too. */
const FURTHEST_NEXT_MS = 3_600_000;
/** When a process that seals dies, another takes over within the sum of these. The lock of a job in work is renewed. */
const LOCK_MS = 15_000;
const STALLED_CHECK_MS = 5_000;

export interface SealerOptions {
  /** Of several, from 1 on: each is sealed by itself, so that none waits for another. Undefined: one server. */
  readonly shard: number | undefined;
  /** Is the sealer's own: it closes it. */
  readonly connection: QueueConnection;
  readonly prefix: string;
  /** How often to look for an hour that is due. */
  readonly everyMs: number;
  /** How long after its end an hour is sealed. Events later than that are exact too, but cost a mark and a recomputed cell. */
  readonly delayMs: number;
  readonly rescheduleMs?: number;
  /** Its statements may take minutes: one hour is the least that is sealed at a time, however many events it has. */
  readonly warehouse: Warehouse;
  readonly metrics: IngestMetrics;
  readonly log: Logger;
}

export class Sealer {
  readonly #options: SealerOptions;
  readonly #queue: Queue;
  readonly #worker: Worker;
  readonly #outage: Outage;
  readonly #logQueueError: (err: Error) => void;
  readonly #stopping = new AbortController();
  readonly #state = new StateMachine<'idle' | 'sealing' | 'stopped'>('sealer', 'idle', {
    idle: ['sealing', 'stopped'],
    sealing: ['idle'],
    stopped: [],
  });
  #rescheduling: NodeJS.Timeout | undefined;

  constructor(options: SealerOptions) {
    const { log, shard } = options;
    const connection = options.connection.redis;
    const prefix = prefixIn(connection, options.prefix);
    this.#options = options;
    this.#outage = new Outage(log, serverName(shard), 'hours stay unsealed until it does');
    const queueName = shard === undefined ? SEALING_QUEUE : `${SEALING_QUEUE}-${shard}`;
    this.#queue = new Queue(queueName, { connection, prefix });
    this.#worker = new SealingWorker(queueName, () => this.seal(), {
      connection,
      prefix,
      closing: this.#stopping.signal,
      concurrency: 1,
      autorun: false,
      lockDuration: LOCK_MS,
      stalledInterval: STALLED_CHECK_MS,
      maxStalledCount: Number.MAX_SAFE_INTEGER,
      removeOnComplete: { count: 1 },
      removeOnFail: { count: 1 },
    });
    // The same error may come with every attempt to take a job.
    this.#logQueueError = onceAMinute((err) => {
      log.error(
        { event: 'sealing_queue_error', shard, err },
        'nothing is sealed: Redis refuses the queue of the sealer',
      );
    });
    const onError = (error: Error) => this.#onQueueError(error);
    this.#queue.on('error', onError);
    this.#worker.on('error', onError);
    this.#worker.on('failed', (_job, err) => {
      log.error({ event: 'sealing_failed', err }, 'A sealing job failed: a defect of the sealer');
    });
  }

  run(): void {
    // A failure is tried again. It is not waited for: a node of a Redis Cluster that is away holds up no usage event.
    const reschedule = () => this.#schedule().catch((error: Error) => this.#onQueueError(error));
    void reschedule();
    this.#rescheduling = setInterval(reschedule, this.#options.rescheduleMs ?? RESCHEDULE_MS);
    this.#worker.run().catch((error: unknown) => {
      this.#options.log.fatal({ event: 'sealer_stopped', err: error }, 'The sealer has stopped');
      throw error;
    });
  }

  /** The usage worker's connections report an outage of Redis, and it empties one that is full. */
  #onQueueError(error: Error & { readonly code?: unknown }): void {
    // A number: BullMQ's scripts have refused, such as for a lock that was lost.
    const isExpected = isConnectionError(error) || typeof error.code === 'number' || error.message.startsWith('OOM');
    if (!isExpected) this.#logQueueError(error);
  }

  /**
   * A schedule that is there already keeps its next moment, unless that is too far away: a process whose clock was days
   * ahead has set it, and nothing would be sealed until then.
   */
  async #schedule(): Promise<void> {
    const { everyMs } = this.#options;
    await this.#queue.setGlobalConcurrency(1);
    const known = await this.#queue.getJobScheduler(SCHEDULER);
    if ((known?.next ?? 0) > Date.now() + everyMs + FURTHEST_NEXT_MS) await this.#queue.removeJobScheduler(SCHEDULER);
    await this.#queue.upsertJobScheduler(SCHEDULER, { every: everyMs });
  }

  /** Ends the step under way, which may take minutes: the next process that seals does it again. */
  async close(): Promise<void> {
    this.#stopping.abort();
    clearInterval(this.#rescheduling);
    await this.#worker.close();
    this.#state.enter('stopped');
    await this.#queue.close();
    this.#options.connection.redis.disconnect();
  }

  /**
   * Seals every hour and day that is due. The scheduler's job runs it.
   * @throws when it is sealing already or has stopped; an outage of ClickHouse is logged, and the next job tries again
   */
  async seal(): Promise<void> {
    this.#state.enter('sealing');
    const { signal } = this.#stopping;
    try {
      while (await this.#sealStep(signal));
      const seals = await readWatermarks(this.#options.warehouse.within({ signal }));
      for (const grain of GRAINS) this.#sealedUntil(grain).set(seals[grain].sealedUntil / 1000);
      this.#outage.recovered();
    } catch (error) {
      if (!signal.aborted) this.#outage.failed(error);
    } finally {
      this.#state.enter('idle');
    }
  }

  #sealedUntil(grain: Grain) {
    const { metrics, shard } = this.#options;
    return metrics.sealedUntil.labels({ grain, ...shardLabel(shard) });
  }

  /** @returns whether there may be more to seal */
  async #sealStep(signal: AbortSignal): Promise<boolean> {
    const { warehouse, shard, delayMs, metrics, log } = this.#options;
    const startedAt = performance.now();
    const rest = (ms: number) => delay(ms, undefined, { signal });
    const step = await sealNext(warehouse.within({ signal }), Date.now() - delayMs, undefined, rest);
    if (!step) return false;
    const { grain, from, to, tooLarge } = step;
    const seconds = (performance.now() - startedAt) / 1000;
    metrics.sealDuration.observe({ grain }, seconds);
    log.info(
      { event: 'sealed', shard, grain, from: formatTimestamp(from), to: formatTimestamp(to), seconds },
      'cells are ready to be read',
    );
    tellTooLarge(this.#options, tooLarge);
    this.#outage.recovered();
    return true;
  }
}
