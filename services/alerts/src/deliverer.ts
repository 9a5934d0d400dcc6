/**
 * Delivers webhooks, messages and e-mails from the outbox in Redis. A loop claims due deliveries and sends them. A claim is a lease, which
 * expires at a set time. If the process dies, another process claims the delivery after that time.
 *
 * Each delivery arrives at least once, always with the same body and ID. If a process dies after the receiver got the delivery and before
 * Redis recorded the attempt, the receiver gets the delivery again.
 */
import { setTimeout as delay } from 'node:timers/promises';
import { type EpochMs, MS_PER_HOUR } from '@meterline/catalog';
import { type Alert, type AlertStore, type Delivery, isSigned, validSecrets } from '@meterline/service/alerts';
import { onceAMinute } from '@meterline/service/log';
import { inTime } from '@meterline/service/waiting';
import type { Logger } from 'pino';
import { Webhook } from 'standardwebhooks';
import type { AlertMetrics } from './metrics.js';
import { ATTEMPT_TIMEOUT_MS, type AttemptResult, type PostOptions, postWebhook } from './post-webhook.js';
import { MAIL_TIMEOUT_MS, type SendMail } from './send-mail.js';

export interface DelivererOptions extends PostOptions {
  readonly alerts: AlertStore;
  /** Undefined if the operator has not set a mail server. */
  readonly sendMail?: SendMail | undefined;
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
/** If an account already has {@link CONCURRENCY_OF_ACCOUNT} attempts in progress, its next delivery waits at least this long. */
const WAIT_MS = 1_000;
/** The waiting deliveries of an account become due at this interval. Otherwise thousands would be claimed every second, in vain. */
const WAIT_STEP_MS = 50;
/** How long a delivery waits for that of a lower threshold. The waits of an account's concurrent attempts together must fit into a lease. */
const TURN_MS = 1_000;
/** How long a claim (lease) holds: longer than an attempt, so that it expires only if the process died or lost its connection to Redis. */
const LEASE_MS = ATTEMPT_TIMEOUT_MS + 5_000;
const MAIL_LEASE_MS = MAIL_TIMEOUT_MS + 5_000;
const MAX_RETRY_AFTER_MS = MS_PER_HOUR;

export class Deliverer {
  readonly #options: DelivererOptions;
  readonly #attempts = new Set<Promise<void>>();
  readonly #accounts = new Map<string, { attempts: number; lastDueAt: EpochMs }>();
  /** The last first attempt for each alert and recipient. The next one waits for it, so that messages arrive in order. */
  readonly #turns = new Map<string, Promise<void>>();
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
      return alerts.deliveries.postpone(id, leaseUntil, account.lastDueAt);
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

  /** Waits for the first attempt for a lower threshold, but at most a second, so that lower thresholds usually arrive first. */
  async #deliverInTurn(delivery: Delivery, alert: Alert, leaseUntil: EpochMs): Promise<void> {
    const receiver = `${alert.id} ${delivery.to}`;
    const start = Promise.resolve(this.#turns.get(receiver));
    const attempt = start.then(() => this.#deliver(delivery, alert, leaseUntil));
    const turn = start.then(() => inTime('the receiver', attempt, TURN_MS)).catch(() => undefined);
    this.#turns.set(receiver, turn);
    try {
      await attempt;
    } finally {
      if (this.#turns.get(receiver) === turn) this.#turns.delete(receiver);
    }
  }

  async #deliver(delivery: Delivery, alert: Alert, leaseUntil: EpochMs): Promise<void> {
    // The delivery may have waited for Redis or its turn. If too little of the lease is left, another process could send it as well.
    const { alerts, metrics, log, retryMs } = this.#options;
    const now = Date.now();
    if (now + ATTEMPT_TIMEOUT_MS > leaseUntil)
      return alerts.deliveries.postpone(delivery.id, leaseUntil, now + WAIT_MS);
    const lease = delivery.to === undefined ? leaseUntil : now + MAIL_LEASE_MS;
    if (lease !== leaseUntil) await alerts.deliveries.postpone(delivery.id, leaseUntil, lease);
    const at = new Date();
    const { isDelivered, outcome, retryAfterMs = 0, isFinal = false, reason } = await this.#send(delivery, alert, at);
    // A test is never retried, because it shows the result of one attempt.
    const isLast = delivery.type === 'alert.test' || delivery.failures + 1 >= MAX_ATTEMPTS || isFinal;
    const waitMs = Math.max(retryMs * 2 ** delivery.failures, Math.min(retryAfterMs, MAX_RETRY_AFTER_MS));
    const state = await alerts.deliveries.noteAttempt(delivery, {
      at,
      outcome,
      state: isDelivered ? 'delivered' : isLast ? 'failed' : 'pending',
      leaseUntil: lease,
      dueAt: Date.now() + waitMs,
    });
    metrics.attempts.inc({ outcome: isDelivered ? 'delivered' : state === 'pending' ? 'retried' : 'failed' });
    const { account, id } = alert;
    const facts = { account, alert: id, delivery: delivery.id, outcome, attempt: delivery.attempts + 1 };
    if (isDelivered) log.info({ event: 'webhook_delivered', ...facts }, 'alert delivered');
    else log.warn({ event: 'webhook_failed', ...facts, reason, state }, 'an attempt to deliver an alert failed');
  }

  async #send(delivery: Delivery, alert: Alert, at: Date): Promise<AttemptResult> {
    const { sendMail } = this.#options;
    const { id, payload, body = payload } = delivery;
    if (alert.url !== undefined) return postWebhook(alert.url, body, headersOf(id, body, alert, at), this.#options);
    if (!alert.to?.includes(delivery.to ?? '')) {
      return { isDelivered: false, isFinal: true, outcome: 'the address was removed from the alert' };
    }
    return sendMail?.(delivery) ?? { isDelivered: false, outcome: 'the operator has not set a mail server' };
  }
}

/** Signs a webhook with every valid secret. Source: Standard Webhooks, "Webhook headers". */
function headersOf(id: string, body: string, alert: Alert, at: Date): Record<string, string> {
  const headers = {
    'Content-Type': 'application/json',
    'Content-Length': String(Buffer.byteLength(body)),
    'User-Agent': 'Meterline',
  };
  if (!isSigned(alert)) return headers;
  const signatures = validSecrets(alert, at).map((secret) => new Webhook(secret).sign(id, at, body));
  return {
    ...headers,
    'webhook-id': id,
    'webhook-timestamp': String(Math.floor(at.getTime() / 1000)),
    'webhook-signature': signatures.join(' '),
  };
}
