/**
 * Delivers webhooks: BullMQ's queue and worker, with its attempts and back-off. The outbox in Redis says what is to be delivered; whatever
 * of it has no job gets one, so a crash between the two loses nothing.
 *
 * A webhook is sent at least once, always as the same text under the same id. A crash after the receiver has it and before that is noted
 * sends it again.
 */
import { promises as dns } from 'node:dns';
import { type RequestOptions, request as requestHttp } from 'node:http';
import { request as requestHttps } from 'node:https';
import { isIP, type LookupFunction } from 'node:net';
import { type EpochMs, MS_PER_DAY, MS_PER_HOUR, parseRetryAfter } from '@meterline/catalog';
import type { RedisClient } from '@meterline/service/access';
import {
  type Alert,
  type AlertStore,
  type AllowedHosts,
  type Delivery,
  isAllowedHost,
  isPublicAddress,
  targetProblem,
  validSecrets,
} from '@meterline/service/alerts';
import { onceAMinute } from '@meterline/service/log';
import { isConnectionError, workerOptions } from '@meterline/service/queue';
import { inTime } from '@meterline/service/waiting';
import { DelayedError, type Job, Queue, UnrecoverableError, Worker } from 'bullmq';
import type { HttpsProxyAgent } from 'https-proxy-agent';
import type { Logger } from 'pino';
import { Webhook } from 'standardwebhooks';
import type { AlertMetrics } from './metrics.js';

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
/** The most attempts of an account at once, so that a slow endpoint delays no other customer's; what is above waits a little. */
const AT_ONCE_OF_ACCOUNT = 4;
const WAIT_MS = 1_000;
/** A receiver with this status wants no more of this webhook. Source: Standard Webhooks, "Deliverability and reliability". */
const GONE = '410';
/** The longest wait that a receiver may ask for. */
const MAX_RETRY_AFTER_MS = MS_PER_HOUR;
/** How far apart an account's attempts above its limit are looked at, however many wait. */
const LOOK_EVERY_MS = 50;
/** An attempt that should have been made so long ago has no job any more, or one that waits. */
const GRACE_MS = 5 * 60_000;
/** BullMQ's own number of events that are kept of a queue. */
const MAX_QUEUE_EVENTS = 10_000;
/** The outbox is read in slices. */
const DUE_AT_ONCE = 1_000;

export class Deliverer {
  readonly #options: DelivererOptions;
  readonly #queue: Queue<object>;
  readonly #worker: Worker<object>;
  readonly #inWork = new Map<string, { count: number; nextLook: EpochMs }>();
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
    this.#outbox = setInterval(() => {
      this.#adding ??= this.#turn()
        .catch(this.#logError)
        .finally(() => {
          this.#adding = undefined;
        });
    }, this.#options.outboxEveryMs);
  }

  async #turn(): Promise<void> {
    // The worker waits until Redis has accepted a write: BullMQ asks a Redis that refuses again and again, without a pause.
    if (!this.#worker.isRunning()) {
      await this.#queue.trimEvents(MAX_QUEUE_EVENTS);
      this.#worker.run().catch(this.#logError);
    }
    await this.addJobs(new Date());
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
    const inWork = this.#inWork.get(alert.account) ?? { count: 0, nextLook: 0 };
    if (inWork.count >= AT_ONCE_OF_ACCOUNT) {
      inWork.nextLook = Math.max(Date.now() + WAIT_MS, inWork.nextLook + LOOK_EVERY_MS);
      await job.moveToDelayed(inWork.nextLook, token);
      throw new DelayedError();
    }
    inWork.count += 1;
    this.#inWork.set(alert.account, inWork);
    try {
      await this.#deliver(delivery, alert, job);
    } finally {
      inWork.count -= 1;
      if (inWork.count === 0) this.#inWork.delete(alert.account);
    }
  }

  /** @throws Error when the attempt has failed, for BullMQ to make another */
  async #deliver(delivery: Delivery, alert: Alert, job: Job<object>): Promise<void> {
    const { alerts, metrics, log } = this.#options;
    const { attemptsMade } = job;
    const at = new Date();
    const headers = headersOf(delivery, alert, at);
    const posted = await post(alert.url, delivery.payload, headers, this.#options);
    const { isDelivered, text: outcome, retryAfterMs = 0 } = posted;
    // A test is to show what happens now.
    const isTest = delivery.payload.startsWith('{"type":"alert.test"');
    const isLast = attemptsMade + 1 >= ATTEMPTS || outcome === GONE || isTest;
    const planned = isDelivered ? 'delivered' : isLast ? 'failed' : 'pending';
    const delay = Math.max(this.#options.retryMs * 2 ** attemptsMade, Math.min(retryAfterMs, MAX_RETRY_AFTER_MS));
    // BullMQ waits for as long before the next attempt.
    job.opts.backoff = { type: 'fixed', delay };
    const dueAt = at.getTime() + Math.min(delay, MS_PER_DAY) + GRACE_MS;
    const attempt = { at, outcome, state: planned, dueAt } as const;
    const state = await alerts.deliveries.noteAttempt(delivery, attempt);
    metrics.attempts.inc({ outcome: isDelivered ? 'delivered' : state === 'pending' ? 'retried' : 'failed' });
    const { account, id } = alert;
    const facts = { account, alert: id, delivery: delivery.id, outcome, attempt: delivery.attempts + 1 };
    if (isDelivered) log.info({ event: 'webhook_delivered', ...facts }, 'a webhook is delivered');
    else log.warn({ event: 'webhook_failed', ...facts, state }, 'an attempt to deliver a webhook has failed');
    // What is wanted again gets another job, with all attempts.
    if (isDelivered || state !== planned) return;
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

export interface PostOptions extends Pick<RequestOptions, 'lookup'> {
  readonly allowedHosts: AllowedHosts;
  /** For public hosts. The proxy resolves their names, and must reject private addresses. */
  readonly proxyAgent?: HttpsProxyAgent<string> | undefined;
  /** From the first packet to the last. */
  readonly timeoutMs?: number;
}

interface Outcome {
  readonly isDelivered: boolean;
  /** The HTTP status, or why there is none. It names no address: who reads it may not know what a name stands for here. */
  readonly text: string;
  /** How long the receiver wants no further attempt: `Retry-After` of a 429 or 503. */
  readonly retryAfterMs?: number | undefined;
}

const TIMEOUT_MS = 10_000;
/** The share of it for name servers. If only A or only AAAA is answered by then, there is time to connect to those addresses. */
const NAMES_SHARE = 0.4;
/** What a receiver answers is of no interest; beyond so much of it the connection is dropped. */
const MAX_RESPONSE_BYTES = 64 * 1024;
const LONGEST_REASON = 100;

/**
 * Posts a webhook; never rejects. Without a proxy, names are resolved here, and only public addresses are connected to, even if
 * the name resolves differently after a check; no redirect is followed. A status of 2xx is a delivery. Decision 0013 has the libraries.
 */
export function post(
  target: string,
  body: string,
  headers: Readonly<Record<string, string>>,
  { allowedHosts, proxyAgent, timeoutMs = TIMEOUT_MS, lookup }: PostOptions,
): Promise<Outcome> {
  const problem = targetProblem(target, allowedHosts);
  if (problem !== undefined) return Promise.resolve({ isDelivered: false, text: `url ${problem}` });
  const url = new URL(target);
  const isAllowed = isAllowedHost(url, allowedHosts);
  const agent = (!isAllowed && proxyAgent) || false;
  const names = isAllowed ? lookup : publicOnly(lookup ?? nameServers(timeoutMs * NAMES_SHARE));
  const signal = AbortSignal.timeout(timeoutMs);
  const options = { method: 'POST', headers, agent, lookup: names, signal };
  return new Promise((resolve) => {
    let status: number | undefined;
    let retryAfterMs: number | undefined;
    let reason: NodeJS.ErrnoException | undefined;
    const request = (url.protocol === 'http:' ? requestHttp : requestHttps)(url, options, (response) => {
      status = response.statusCode ?? 0;
      const isBusy = status === 429 || status === 503;
      if (isBusy) retryAfterMs = parseRetryAfter(response.headers['retry-after'] ?? null, new Date());
      let bytes = 0;
      response.on('data', (chunk: Buffer) => {
        bytes += chunk.length;
        if (bytes > MAX_RESPONSE_BYTES) request.destroy();
      });
      response.on('error', () => undefined);
    });
    request.on('error', (error) => {
      reason ??= error;
    });
    request.on('close', () => {
      const isDelivered = status !== undefined && status >= 200 && status < 300;
      const text = status === undefined ? reasonOf(reason, timeoutMs) : String(status);
      resolve({ isDelivered, text, retryAfterMs });
    });
    request.end(body);
  });
}

/**
 * Asks the name servers itself. The system's own lookup waits in two threads of the process for all names, so that one customer's name
 * server that does not answer would hold up the webhooks of everybody.
 */
function nameServers(timeoutMs: number): LookupFunction {
  return async (hostname, { all }, callback) => {
    const asked = [dns.resolve4(hostname), dns.resolve6(hostname)];
    const found = await Promise.allSettled(asked.map((each) => inTime('the name server', each, timeoutMs)));
    const answers = found.flatMap((each) => (each.status === 'fulfilled' ? each.value : []));
    const addresses = answers.map((address) => ({ address, family: isIP(address) }));
    const [first] = addresses;
    const [ipv4] = found;
    if (!first) callback(ipv4?.status === 'rejected' ? ipv4.reason : new Error('the name has no address'), '');
    else if (all) callback(null, addresses);
    else callback(null, first.address, first.family);
  };
}

/** Fails unless all addresses are public; those of a URL itself are checked by `targetProblem`. */
function publicOnly(lookup: LookupFunction): LookupFunction {
  return (hostname, options, callback) =>
    lookup(hostname, options, (error, found, family) => {
      const addresses = typeof found === 'string' ? [found] : found.map(({ address }) => address);
      if (error || addresses.every(isPublicAddress)) callback(error, found, family);
      else callback(new Error('the host has an address that is not public'), '');
    });
}

function reasonOf(error: NodeJS.ErrnoException | undefined, timeoutMs: number): string {
  if (!error) return 'the connection was closed without a response';
  if (error.name === 'AbortError' || error.name === 'TimeoutError') return `no response within ${timeoutMs / 1000} s`;
  return error.code ?? error.message.slice(0, LONGEST_REASON);
}
