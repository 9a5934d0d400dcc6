/** Runtimes that send events through the collector and the queue until each is accepted, and dashboards that are looked at. */
import { QUEUE_NAME, type UsageEventInput } from '@meterline/catalog';
import { createRedisClient, type RedisClient } from '@meterline/service/access';
import { Queue } from 'bullmq';
import type { SeededRandom } from '../faults/stream.js';
import { BAD_EVENTS, content } from '../faults/stream.js';
import { CAREFUL } from '../faults/stream-run.js';
import { pause } from '../harness/queue.js';
import type { ServiceEnvironment } from '../harness/services.js';
import { COST_DECIMALS, costUnder, EXAMPLE_BOOK, type OraclePriceBook, USAGE_DECIMALS } from '../oracle/event-rules.js';
import { decimalOf, printDecimal, roundHalfEven } from '../oracle/exact.js';
import type { Deployment } from './deployment.js';

const SENDERS = 8;
const DASHBOARDS = 4;
const LOOK_EVERY_MS = 400;
const RETRY_MS = 200;
const REQUEST_TIMEOUT_MS = 30_000;
/** After an outage, senders make up for at most so much. */
const ARREARS_MS = 10_000;
const HOUR_MS = 3_600_000;
/** What is late, and what dashboards show: shorter than the warm-up, or there would be more to recompute and to read all the time. */
const RECENT_HOURS = 4;
/** Revisions and duplicates of each account that are held back, to be sent with later events. */
const HELD = 100;
/** The collector makes a UUID of any id. */
const BAD = BAD_EVENTS.filter(([reason]) => reason !== 'invalid_event_id');
const LOOKS = [
  'resolution=daily',
  'resolution=hourly&groupBy=billing_dimension',
  'resolution=daily&groupBy=workspace,billing_dimension',
  'resolution=daily&groupBy=resource_name&limit=20',
  'resolution=monthly&groupBy=resource_uuid,billing_dimension&limit=50',
];

interface Sum {
  usage: bigint;
  cost: bigint;
}

/** A book for each dimension, so that its price is found at once. */
const BOOKS = new Map<string, OraclePriceBook>(
  EXAMPLE_BOOK.prices.map((price) => [price.billingDimension, { ...EXAMPLE_BOOK, prices: [price] }]),
);
const ENTRY = /"billingDimension":"([a-z_]+)"[^{]*"summary":\{"cost":([\d.]+),"usage":([\d.]+)\}/g;

/** What must count in the end, as sums of whole numbers: it shares no code with the product, and does not grow with the events. */
class Ledger {
  readonly #sums = new Map<string, Sum>();
  events = 0;
  /** Events that a worker must have kept as rejected. */
  rejected = 0;

  /** To be called once for each event, with its highest revision, unless that is a void. */
  add(event: { accountId: string; billingDimension: string; usage: number | string }): void {
    const { accountId, billingDimension } = event;
    const decimal = decimalOf(String(event.usage));
    const usage = decimal && roundHalfEven(decimal, USAGE_DECIMALS);
    const book = BOOKS.get(billingDimension);
    const cost = usage && book && costUnder(book, { accountId, billingDimension, timestamp: 0, usage });
    if (usage === undefined || cost === undefined) throw new Error(`the ledger cannot read ${JSON.stringify(event)}`);
    const key = `${accountId} ${billingDimension}`;
    const before = this.#sums.get(key) ?? { usage: 0n, cost: 0n };
    this.#sums.set(key, { usage: before.usage + usage, cost: before.cost + cost });
    this.events += 1;
  }

  /** @param body a response by dimension @returns the dimensions of the account that differ from it in any digit, as they should be */
  differences(accountId: string, body: string): string[] {
    const shown = new Map(
      [...body.matchAll(ENTRY)].map(([, dimension, cost, usage]) => [dimension, `${cost} ${usage}`]),
    );
    return [...BOOKS.keys()].flatMap((dimension) => {
      const { usage, cost } = this.#sums.get(`${accountId} ${dimension}`) ?? { usage: 0n, cost: 0n };
      const expected = `${printDecimal(cost, COST_DECIMALS)} ${printDecimal(usage, USAGE_DECIMALS)}`;
      const found = shown.get(dimension) ?? '0 0';
      return found === expected ? [] : [`${accountId} ${dimension}: ${found} instead of ${expected} (cost, usage)`];
    });
  }
}

export interface SoakAccount {
  readonly id: string;
  readonly emitterKey: string;
  readonly key: string;
}

/** `send` and `look` run until `ended`, and throw AbortError when `signal` is aborted. */
export class Traffic {
  readonly ledger = new Ledger();
  readonly complaints = new Set<string>();
  /** Accepted events, with duplicates and each revision. */
  sent = 0;
  readonly #held = new Map<string, UsageEventInput[]>();
  readonly #redis: RedisClient;
  readonly #queue: Queue;

  constructor(
    readonly random: SeededRandom,
    readonly accounts: readonly SoakAccount[],
    readonly deployment: Deployment,
    { REDIS_URL: redisUrl = '', QUEUE_PREFIX: prefix = '' }: ServiceEnvironment,
    readonly signal: AbortSignal,
  ) {
    this.#redis = createRedisClient(redisUrl, CAREFUL);
    this.#redis.on('error', () => undefined);
    this.#queue = new Queue(QUEUE_NAME, { connection: this.#redis, prefix });
    this.#queue.on('error', () => undefined);
  }

  /** @param rate events a second */
  async send(rate: number, ended: AbortSignal): Promise<void> {
    await this.#queue.waitUntilReady();
    let dueAt = performance.now();
    const sender = async (_: unknown, n: number) => {
      while (!ended.aborted) {
        const size = this.random.chance(0.2) ? 1 : this.random.integer(2, 250);
        const wait = dueAt - performance.now();
        dueAt = Math.max(dueAt, performance.now() - ARREARS_MS) + (size / rate) * 1000;
        if (wait > 0) await pause(wait, this.signal);
        await this.#sendNext(this.random.pick(this.accounts), size, n % 2 === 0);
      }
    };
    await Promise.all(Array.from({ length: SENDERS }, sender));
    for (const { id } of this.accounts) {
      const held = this.#held.get(id)?.splice(0) ?? [];
      await this.#deliver(() => this.#add(held));
    }
  }

  async look(ended: AbortSignal): Promise<void> {
    const dashboard = async () => {
      while (!ended.aborted) {
        const { id, key } = this.random.pick(this.accounts);
        const until = Math.ceil(this.deployment.workerTime() / HOUR_MS) * HOUR_MS;
        const [startTime, endTime] = [until - RECENT_HOURS * HOUR_MS, until].map((time) =>
          new Date(time).toISOString(),
        );
        const path = `/v0/accounts/${id}/metrics?startTime=${startTime}&endTime=${endTime}&${this.random.pick(LOOKS)}`;
        const page = await this.ask(key, path, this.random.chance(0.5) ? { 'cache-control': 'max-age=60' } : {});
        const [, cursor] = /"nextCursor":"([^"]+)"/.exec(page ?? '') ?? [];
        if (cursor) await this.ask(key, `${path}&cursor=${cursor}`);
        await pause(LOOK_EVERY_MS, this.signal);
      }
    };
    await Promise.all(Array.from({ length: DASHBOARDS }, dashboard));
  }

  /** @returns undefined when the API cannot answer, or no longer has the page */
  ask(key: string, path: string, headers: Readonly<Record<string, string>> = {}): Promise<string | undefined> {
    const url = `${this.deployment.url('query')}${path}`;
    return this.#exchange('asked', 200, url, { headers: { ...headers, authorization: `Bearer ${key}` } });
  }

  disconnect(): void {
    this.#redis.disconnect();
  }

  /** New events of the account, some that were held back, and now and then a bad one. */
  async #sendNext(account: SoakAccount, size: number, throughCollector: boolean): Promise<void> {
    const held = this.#held.get(account.id) ?? [];
    this.#held.set(account.id, held);
    const events: unknown[] = held.splice(0, Math.min(size, held.length - HELD));
    let bad = 0;
    while (events.length < size) {
      if (this.random.chance(0.003)) {
        const [, spoil] = this.random.pick(BAD);
        const mark = `bad-${this.random.uuid()}`;
        events.push(spoil({ ...this.#event(account.id), resourceUuid: mark }, mark));
        bad += 1;
      } else {
        const [now, ...later] = this.#payloads(account.id);
        events.push(now);
        held.push(...later);
      }
    }
    await this.#deliver(() => (throughCollector ? this.#post(account, events, bad) : this.#add(events)));
    this.sent += events.length - bad;
    if (!throughCollector) this.ledger.rejected += bad;
  }

  async #deliver(send: () => Promise<boolean>): Promise<void> {
    while (!(await send())) await pause(RETRY_MS, this.signal);
  }

  #add(events: readonly unknown[]): Promise<boolean> {
    const added = events.length === 0 ? Promise.resolve() : this.#queue.add('usage', { events });
    return added.then(
      () => true,
      () => false,
    );
  }

  async #post({ id, emitterKey }: SoakAccount, events: readonly unknown[], bad: number): Promise<boolean> {
    const url = `${this.deployment.url('collector')}/v0/accounts/${id}/events`;
    const headers = { authorization: `Bearer ${emitterKey}`, 'content-type': 'application/json' };
    const wanted = bad < events.length ? 202 : 400;
    const body = await this.#exchange('sent', wanted, url, { method: 'POST', headers, body: JSON.stringify(events) });
    if (body !== undefined && !body.includes(`"rejected":${bad},`)) this.complaints.add(`${bad} are bad of ${body}`);
    return body !== undefined;
  }

  /** @returns the body of a response that has the status; 503, none at all, and a page that is no longer kept are no defects */
  async #exchange(what: string, wanted: number, url: string, request: RequestInit): Promise<string | undefined> {
    const response = await fetch(url, { ...request, signal: AbortSignal.timeout(REQUEST_TIMEOUT_MS) }).catch(
      () => null,
    );
    const body = await response?.text().catch(() => undefined);
    this.signal.throwIfAborted();
    const [, code] = /"error":"(\w+)"/.exec(body ?? '') ?? [];
    const status = body === undefined ? 'none' : response?.status;
    const name = [what, status, code, response?.headers.has('age') && 'from the cache'].filter(Boolean).join(' ');
    if (status === wanted) return body;
    if (status !== 503 && status !== 'none' && code !== 'cursor_expired') this.complaints.add(`${name}: ${body}`);
    return undefined;
  }

  /** What is sent of a new event, in this order: the event, perhaps a revision or a void, perhaps one of them again. */
  #payloads(accountId: string): UsageEventInput[] {
    const { random } = this;
    const first = this.#event(accountId);
    const isRevised = random.chance(0.04);
    const change = { ...content(random), revision: random.integer(1, 9), void: random.chance(0.3) };
    const last: UsageEventInput = isRevised ? { ...first, ...change } : first;
    if (last.void !== true) this.ledger.add(last);
    const payloads = isRevised ? [first, last] : [first];
    if (random.chance(0.03)) payloads.push({ ...random.pick(payloads) });
    return payloads.length > 1 ? random.shuffled(payloads) : payloads;
  }

  /** Most are of the last five minutes, some of sealed hours, a few of the last year. */
  #event(accountId: string): UsageEventInput {
    const { random } = this;
    const hours = random.chance(0.995) ? 0.08 : random.chance(0.9) ? RECENT_HOURS : 8_760;
    return {
      eventId: random.uuid(),
      accountId,
      ...content(random),
      resourceUuid: `uuid-${random.integer(1, 300)}`,
      timestamp: new Date(this.deployment.workerTime() - random.integer(0, hours * HOUR_MS)).toISOString(),
    };
  }
}
