/**
 * Delivers webhooks from the outbox in Redis. A loop claims due deliveries, each with a lease, and posts them. If the process dies, the
 * leases expire and another process claims the deliveries.
 *
 * Each webhook is delivered at least once, always with the same body and ID. If a process dies after the receiver got the webhook and
 * before Redis recorded the attempt, the receiver gets the webhook again.
 */
import { setTimeout as delay } from 'node:timers/promises';
import { type EpochMs, MS_PER_HOUR } from '@meterline/catalog';
import { type Alert, type AlertStore, type Delivery, validSecrets } from '@meterline/service/alerts';
import { onceAMinute } from '@meterline/service/log';
import type { Logger } from 'pino';
import { Webhook } from 'standardwebhooks';
import type { AlertMetrics } from './metrics.js';
import { POST_TIMEOUT_MS, type PostOptions, postWebhook } from './post-webhook.js';

export interface DelivererOptions extends PostOptions {
  readonly alerts: AlertStore;
  readonly outboxEveryMs: number;
  /** The wait after the first failed attempt. It doubles after each further attempt. */
  readonly retryMs: number;
  readonly metrics: AlertMetrics;
  readonly log: Logger;
}

export const MAX_ATTEMPTS = 14;
const CONCURRENCY = 100;
/** Limits the concurrent attempts of an account, so that its slow endpoint does not delay the webhooks of other accounts. */
const CONCURRENCY_OF_ACCOUNT = 4;
/** A delivery above this limit waits at least this long. */
const WAIT_MS = 1_000;
/** An account's waiting deliveries become due this far apart. Otherwise thousands would be claimed every second, in vain. */
const WAIT_STEP_MS = 50;
/** Longer than an attempt, so that a lease expires only if the process died or lost its connection to Redis. */
const LEASE_MS = POST_TIMEOUT_MS + 5_000;
/** With this status the receiver asks for no more attempts. Source: Standard Webhooks, "Deliverability and reliability". */
const GONE = '410';
const MAX_RETRY_AFTER_MS = MS_PER_HOUR;

export class Deliverer {
  readonly #options: DelivererOptions;
  readonly #attempts = new Set<Promise<void>>();
  readonly #accounts = new Map<string, { attempts: number; lastDueAt: EpochMs }>();
  /** The latest first attempt of each alert in progress. */
  readonly #firstAttempts = new Map<string, Promise<void>>();
  readonly #stop = new AbortController();
  readonly #logError: (err: unknown) => void;
  #loop: Promise<void> | undefined;

  constructor(options: DelivererOptions) {
    this.#options = options;
    this.#logError = onceAMinute((err: unknown) => {
      options.log.error(
        { event: 'webhook_queue_error', err },
        'webhooks are delayed: Redis rejects a command on the outbox',
      );
    });
  }

  run(): void {
    this.#loop = this.#deliverUntilStopped(this.#stop.signal);
  }

  /** Stops claiming deliveries, and waits for the attempts in progress. */
  async close(): Promise<void> {
    this.#stop.abort();
    await this.#loop;
    await Promise.all(this.#attempts);
  }

  async #deliverUntilStopped(signal: AbortSignal): Promise<void> {
    const { alerts, outboxEveryMs } = this.#options;
    while (!signal.aborted) {
      const limit = CONCURRENCY - this.#attempts.size;
      const now = Date.now();
      const leaseUntil = now + LEASE_MS;
      const ids = await alerts.deliveries.claim(now, leaseUntil, limit).catch(this.#logError);
      for (const id of ids ?? []) {
        const attempt: Promise<void> = this.#attempt(id, leaseUntil)
          .catch(this.#logError)
          .finally(() => this.#attempts.delete(attempt));
        this.#attempts.add(attempt);
      }
      if (this.#attempts.size >= CONCURRENCY) await Promise.race(this.#attempts);
      else await delay(outboxEveryMs, undefined, { signal }).catch(() => undefined);
    }
  }

  async #attempt(id: string, leaseUntil: EpochMs): Promise<void> {
    const { alerts } = this.#options;
    const delivery = await alerts.deliveries.find(id);
    const alert = delivery && (await alerts.find(delivery.alertId));
    if (!delivery || !alert) return alerts.deliveries.drop(id);
    const account = this.#accounts.get(alert.account) ?? { attempts: 0, lastDueAt: 0 };
    if (account.attempts >= CONCURRENCY_OF_ACCOUNT) {
      account.lastDueAt = Math.max(Date.now() + WAIT_MS, account.lastDueAt + WAIT_STEP_MS);
      return alerts.deliveries.postpone(id, account.lastDueAt);
    }
    account.attempts += 1;
    this.#accounts.set(alert.account, account);
    try {
      const isFirst = delivery.type === 'usage.threshold_reached' && delivery.attempts === 0;
      if (isFirst) await this.#deliverInTurn(delivery, alert, leaseUntil);
      else await this.#deliver(delivery, alert, leaseUntil);
    } finally {
      account.attempts -= 1;
      if (account.attempts === 0) this.#accounts.delete(alert.account);
    }
  }

  /** Starts after the alert's earlier first attempts, because receivers expect the webhook of a lower threshold first. */
  async #deliverInTurn(delivery: Delivery, alert: Alert, leaseUntil: EpochMs): Promise<void> {
    const earlier = this.#firstAttempts.get(alert.id);
    const attempt = Promise.allSettled([earlier]).then(() => this.#deliver(delivery, alert, leaseUntil));
    this.#firstAttempts.set(alert.id, attempt);
    try {
      await attempt;
    } finally {
      if (this.#firstAttempts.get(alert.id) === attempt) this.#firstAttempts.delete(alert.id);
    }
  }

  async #deliver(delivery: Delivery, alert: Alert, leaseUntil: EpochMs): Promise<void> {
    // The delivery may have waited for Redis or its turn. Without enough of the lease left, another process would post at the same time.
    if (Date.now() + POST_TIMEOUT_MS > leaseUntil) return;
    const { alerts, metrics, log, retryMs } = this.#options;
    const at = new Date();
    const headers = headersOf(delivery, alert, at);
    const {
      isDelivered,
      outcome,
      retryAfterMs = 0,
    } = await postWebhook(alert.url, delivery.payload, headers, this.#options);
    // A test webhook is never retried, because it shows the result of one attempt.
    const isLast = delivery.type === 'alert.test' || delivery.failures + 1 >= MAX_ATTEMPTS || outcome === GONE;
    const waitMs = Math.max(retryMs * 2 ** delivery.failures, Math.min(retryAfterMs, MAX_RETRY_AFTER_MS));
    const state = await alerts.deliveries.noteAttempt(delivery, {
      at,
      outcome,
      state: isDelivered ? 'delivered' : isLast ? 'failed' : 'pending',
      leaseUntil,
      dueAt: Date.now() + waitMs,
    });
    metrics.attempts.inc({ outcome: isDelivered ? 'delivered' : state === 'pending' ? 'retried' : 'failed' });
    const { account, id } = alert;
    const facts = { account, alert: id, delivery: delivery.id, outcome, attempt: delivery.attempts + 1 };
    if (isDelivered) log.info({ event: 'webhook_delivered', ...facts }, 'webhook delivered');
    else log.warn({ event: 'webhook_failed', ...facts, state }, 'an attempt to deliver a webhook failed');
  }
}

/** Signs the payload with every valid secret. Source: Standard Webhooks, "Webhook headers". */
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
