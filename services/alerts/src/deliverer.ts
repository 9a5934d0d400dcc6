/**
 * Delivers webhooks: BullMQ's queue and worker, with its attempts and back-off. The outbox in Redis says what is to be delivered; whatever
 * of it has no job gets one, so a crash between the two loses nothing.
 *
 * A webhook is sent at least once, always as the same text under the same id. A crash after the receiver has it and before that is noted
 * sends it again.
 */
import { type EpochMs, MS_PER_DAY } from '@meterline/catalog';
import { onceAMinute } from '@meterline/service';
import type { RedisClient } from '@meterline/service/access';
import { type Alert, type AlertStore, type Delivery, validSecrets } from '@meterline/service/alerts';
import { isConnectionError, workerOptions } from '@meterline/service/queue';
import { DelayedError, type Job, Queue, UnrecoverableError, Worker } from 'bullmq';
import type { Logger } from 'pino';
import { Webhook } from 'standardwebhooks';
import type { AlertMetrics } from './metrics.js';
import { type PostOptions, post } from './post.js';

export interface DelivererOptions extends PostOptions {
  readonly connection: RedisClient;
  readonly prefix: string;
  readonly alerts: AlertStore;
  readonly outboxEveryMs: number;
  /** Between the first and the second attempt; then twice as long each time. */
  readonly retryMs: number;
  readonly lockMs: number;
  readonly metrics: AlertMetrics;
  readonly log: Logger;
}

const QUEUE = 'meterline-webhooks';
export const ATTEMPTS = 14;
const CONCURRENCY = 100;
/** So that one customer's slow endpoint delays no other's; what is above it waits a little. */
const AT_ONCE_OF_ACCOUNT = 4;
const WAIT_MS = 1_000;
/** An attempt that should have been made so long ago has no job any more, or one that waits. */
const GRACE_MS = 5 * 60_000;
/** The outbox is read in slices. */
const DUE_AT_ONCE = 1_000;

export class Deliverer {
  readonly #options: DelivererOptions;
  readonly #queue: Queue<object>;
  readonly #worker: Worker<object>;
  readonly #inWork = new Map<string, number>();
  readonly #logError: (err: unknown) => void;
  #outbox: NodeJS.Timeout | undefined;
  #adding: Promise<void> | undefined;

  constructor(options: DelivererOptions) {
    const { connection, prefix, lockMs, log } = options;
    this.#options = options;
    this.#queue = new Queue(QUEUE, { connection, prefix });
    this.#worker = new Worker(QUEUE, (job, token) => this.#attempt(job, token), {
      connection,
      prefix,
      concurrency: CONCURRENCY,
      ...workerOptions(lockMs),
    });
    this.#logError = onceAMinute((err: unknown) => {
      log.error({ event: 'webhook_queue_error', err }, 'webhooks wait: Redis refuses the outbox or the queue');
    });
    const onError = (error: Error) => {
      if (!isConnectionError(error)) this.#logError(error);
    };
    this.#queue.on('error', onError);
    this.#worker.on('error', onError);
  }

  run(): void {
    this.#worker.run().catch(this.#logError);
    this.#outbox = setInterval(() => {
      this.#adding ??= this.addJobs(new Date())
        .catch(this.#logError)
        .finally(() => {
          this.#adding = undefined;
        });
    }, this.#options.outboxEveryMs);
  }

  /** Waits for the attempts in work, which take seconds. */
  async close(): Promise<void> {
    clearInterval(this.#outbox);
    await this.#adding;
    await this.#worker.close();
    await this.#queue.close();
  }

  /**
   * Gives a job to each webhook that is due; one that has a job keeps it, unless somebody wants it to be sent at once. Its old job is removed
   * then, and while that is in work the webhook stays due: it would be postponed and have no job as soon as the old one ends.
   */
  async addJobs(now: Date): Promise<void> {
    const { deliveries } = this.#options.alerts;
    const due = await deliveries.due(now, DUE_AT_ONCE);
    const isFree = await Promise.all(due.map(({ id, atOnce }) => !atOnce || this.#queue.remove(id)));
    const ids = due.flatMap(({ id }, index) => (isFree[index] ? [id] : []));
    if (ids.length === 0) return;
    const backoff = { type: 'exponential', delay: this.#options.retryMs };
    const opts = { attempts: ATTEMPTS, backoff, removeOnComplete: true, removeOnFail: true };
    await this.#queue.addBulk(ids.map((id) => ({ name: 'webhook', data: {}, opts: { ...opts, jobId: id } })));
    // Only now: a process that dies before leaves them due.
    await deliveries.postpone(ids, now.getTime() + GRACE_MS);
  }

  async #attempt(job: Job<object>, token: string | undefined): Promise<void> {
    const { alerts } = this.#options;
    const id = job.id ?? '';
    const delivery = await alerts.deliveries.find(id);
    const alert = delivery && (await alerts.find(delivery.alertId));
    if (!delivery || !alert) return alerts.deliveries.drop(id);
    if (delivery.state !== 'pending') return;
    const inWork = this.#inWork.get(alert.account) ?? 0;
    if (inWork >= AT_ONCE_OF_ACCOUNT) {
      await job.moveToDelayed(Date.now() + WAIT_MS, token);
      throw new DelayedError();
    }
    this.#inWork.set(alert.account, inWork + 1);
    try {
      await this.#deliver(delivery, alert, job.attemptsMade);
    } finally {
      const left = (this.#inWork.get(alert.account) ?? 1) - 1;
      if (left > 0) this.#inWork.set(alert.account, left);
      else this.#inWork.delete(alert.account);
    }
  }

  /** @throws Error when the attempt has failed, for BullMQ to make another */
  async #deliver(delivery: Delivery, alert: Alert, attemptsMade: number): Promise<void> {
    const { alerts, metrics, log, retryMs } = this.#options;
    const at = new Date();
    const headers = headersOf(delivery, alert, at);
    const { isDelivered, text: outcome } = await post(alert.url, delivery.payload, headers, this.#options);
    // A test is to show what happens now.
    const isLast = attemptsMade + 1 >= ATTEMPTS || delivery.payload.startsWith('{"type":"alert.test"');
    const planned = isDelivered ? 'delivered' : isLast ? 'failed' : 'pending';
    const attempt = { at, outcome, state: planned, dueAt: dueAfter(at, attemptsMade, retryMs) } as const;
    const isWantedAgain = await alerts.deliveries.noteAttempt(delivery, attempt);
    const state = isWantedAgain && !isDelivered ? 'pending' : planned;
    metrics.attempts.inc({ outcome: state === 'pending' ? 'retried' : state });
    const { account, id } = alert;
    const facts = { account, alert: id, delivery: delivery.id, outcome, attempt: delivery.attempts + 1 };
    if (isDelivered) log.info({ event: 'webhook_delivered', ...facts }, 'a webhook is delivered');
    else log.warn({ event: 'webhook_failed', ...facts, state }, 'an attempt to deliver a webhook has failed');
    // What is wanted again gets another job, with all attempts.
    if (isDelivered || isWantedAgain) return;
    throw isLast ? new UnrecoverableError(outcome) : new Error(outcome);
  }
}

/** Signed by each valid secret. Source: Standard Webhooks, "Webhook headers". */
function headersOf(delivery: Delivery, alert: Alert, at: Date): Record<string, string> {
  const { id, payload } = delivery;
  const signatures = validSecrets(alert, at).map((secret) => new Webhook(secret).sign(id, at, payload));
  return {
    'Content-Type': 'application/json',
    'Content-Length': String(Buffer.byteLength(payload)),
    'User-Agent': 'Meterline',
    'webhook-id': id,
    'webhook-timestamp': String(Math.floor(at.getTime() / 1000)),
    'webhook-signature': signatures.join(' '),
  };
}

function dueAfter(at: Date, attemptsMade: number, retryMs: number): EpochMs {
  return at.getTime() + Math.min(retryMs * 2 ** attemptsMade, MS_PER_DAY) + GRACE_MS;
}
