/** Producers that send events through the collector and the queue until each is accepted, dashboards that query, and the expected totals. */
import { MS_PER_HOUR, type UsageEventInput } from '@meterline/catalog';
import { MeterlineClient, MeterlineError, type MetricsQuery } from '@meterline/client';
import { pause } from '../harness/queue.js';
import { buildStream, type Rejection, type StreamJob } from '../harness/stream.js';
import { COST_DECIMALS, costUnder, EXAMPLE_BOOK, USAGE_DECIMALS, understand } from '../oracle/event-rules.js';
import { printDecimal } from '../oracle/exact.js';
import { isOutage } from './compare.js';
import { QueueProducer } from './queue-producer.js';
import { spread } from './stream-run.js';
import type { Run } from './suite.js';

const SENDERS = 8;
/** Some seconds of a sender, so that a revision or a copy may come that much later than its event. */
const EVENTS_PER_STREAM = 5_000;
const SHARES = { revised: 0.04, copied: 0.03, bad: 0.003 };
/** After an outage, a sender catches up on at most this much. */
const ARREARS_MS = 10_000;
const DASHBOARDS = 4;
const LOOK_EVERY_MS = 400;
const RETRY_MS = 200;
const REQUEST_TIMEOUT_MS = 30_000;
/** The age of late events, and the window of dashboards: shorter than the warm-up, or there would be ever more to recompute and to read. */
const RECENT_MS = 4 * MS_PER_HOUR;
const LOOKS: readonly Omit<MetricsQuery, 'startTime' | 'endTime'>[] = [
  { resolution: 'daily' },
  { resolution: 'hourly', groupBy: ['billing_dimension'] },
  { resolution: 'daily', groupBy: ['workspace', 'billing_dimension'] },
  { resolution: 'daily', groupBy: ['resource_name'], limit: 20 },
  { resolution: 'monthly', groupBy: ['resource_uuid', 'billing_dimension'], limit: 50 },
];

interface Account {
  readonly id: string;
  readonly emitterKey: string;
  readonly key: string;
}

/** `send` and `look` run until the time `endsAt`, and throw AbortError when the signal is aborted. */
export class Traffic {
  readonly ledger = new Ledger();
  /** What workers must have kept as rejected. */
  readonly rejected: (Rejection & { readonly attempts: number })[] = [];
  /** Payloads, with duplicates. */
  sent = 0;
  readonly #producer: QueueProducer;

  /**
   * @param now the clock of the workers
   * @param urlOf the address of one of the processes of a service
   */
  constructor(
    readonly run: Run,
    readonly accounts: readonly Account[],
    readonly now: () => number,
    readonly urlOf: (service: 'collector' | 'query') => string,
  ) {
    this.#producer = new QueueProducer(run.fixture.product.env);
  }

  /** Every sender sends one stream after the other. @param rate events a second */
  async send(rate: number, endsAt: number, signal: AbortSignal): Promise<void> {
    const { random, name } = this.run;
    let streams = 0;
    const sender = async () => {
      let from = Date.now();
      while (Date.now() < endsAt) {
        streams += 1;
        const account = random.pick(this.accounts);
        const { jobs, events } = buildStream(random, {
          accountId: account.id,
          events: EVENTS_PER_STREAM,
          time: () => this.#time(),
          resources: 300,
          shares: SHARES,
          maxJobEvents: 250,
          mark: `${name}/rejected-${streams}`,
        });
        const size = jobs.reduce((sum, job) => sum + (job.events?.length ?? 1), 0);
        const ms = (1000 * SENDERS * size) / rate;
        await spread(jobs, { from, ms }, signal, (job) => this.#deliver(job, account, signal));
        from = Math.max(from + ms, Date.now() - ARREARS_MS);
        for (const payloads of events) this.ledger.add(payloads.at(-1));
        this.sent += size;
      }
    };
    await Promise.all(Array.from({ length: SENDERS }, sender));
  }

  async look(endsAt: number, signal: AbortSignal): Promise<void> {
    const { random } = this.run;
    const dashboard = async () => {
      while (Date.now() < endsAt) {
        const { id, key } = random.pick(this.accounts);
        const endTime = Math.ceil(this.now() / MS_PER_HOUR) * MS_PER_HOUR;
        const window = { startTime: new Date(endTime - RECENT_MS), endTime: new Date(endTime) };
        const query = { ...window, ...random.pick(LOOKS) };
        const maxAgeSeconds = random.chance(0.5) ? 60 : undefined;
        const client = this.#client('query', key);
        const first = await this.#attempt(signal, () => client.metrics(id, query, { signal, maxAgeSeconds }));
        const cursor = first?.meta.nextCursor;
        if (cursor) await this.#attempt(signal, () => client.metrics(id, { ...query, cursor }, { signal }));
        await pause(LOOK_EVERY_MS, signal);
      }
    };
    await Promise.all(Array.from({ length: DASHBOARDS }, dashboard));
  }

  disconnect(): void {
    this.#producer.disconnect();
  }

  /** Half of the jobs go to the queue; the events of the others are posted until there is a receipt, which must reject exactly the bad ones. */
  async #deliver({ data, events, rejections }: StreamJob, { emitterKey }: Account, signal: AbortSignal): Promise<void> {
    const { random, complain } = this.run;
    if (!events || random.chance(0.5)) {
      const attempts = await this.#producer.add(data, signal);
      for (const rejection of rejections.values()) this.rejected.push({ ...rejection, attempts });
      return;
    }
    const post = () => this.#client('collector', emitterKey).sendEvents(events, { signal });
    let receipt = await this.#attempt(signal, post);
    for (; !receipt; receipt = await this.#attempt(signal, post)) await pause(RETRY_MS, signal);
    const found = receipt.rejected.map(({ index, reason }) => `${index} ${reason}`).join(', ');
    const due = [...rejections].map(([position, { reason }]) => `${position} ${reason}`).join(', ');
    if (found !== due) complain(`the collector rejected ${found || 'nothing'} instead of ${due || 'nothing'}`);
  }

  #client(service: 'collector' | 'query', credential: string): MeterlineClient {
    return new MeterlineClient({ baseUrl: this.urlOf(service), credential, retries: 0, timeout: REQUEST_TIMEOUT_MS });
  }

  /** Complains about an error, unless a process is away or a page is no longer kept. @returns undefined after any error */
  async #attempt<T>(signal: AbortSignal, call: () => Promise<T>): Promise<T | undefined> {
    try {
      return await call();
    } catch (error) {
      signal.throwIfAborted();
      const isExpired = error instanceof MeterlineError && error.code === 'cursor_expired';
      if (!isExpired && !isOutage(error)) this.run.complain(String(error));
      return undefined;
    }
  }

  /** Most times are of the last five minutes, some of sealed hours, a few of the last year. */
  #time(): number {
    const { random } = this.run;
    const age = random.chance(0.995) ? 300_000 : random.chance(0.9) ? RECENT_MS : 8_760 * MS_PER_HOUR;
    return this.now() - random.integer(0, age);
  }
}

const ENTRY = /"billingDimension":"([a-z_]+)"[^{]*"summary":\{"cost":([\d.]+),"usage":([\d.]+)\}/g;

/** The expected totals of each account and dimension. They share no code with the product, and do not grow with the number of events. */
class Ledger {
  /** Cost and usage as whole numbers, by account and dimension. */
  readonly #totals = new Map<string, readonly [cost: bigint, usage: bigint]>();
  events = 0;

  /** To be called once for each event, with the payload of its highest revision. */
  add(event: UsageEventInput | undefined): void {
    const understood = understand(event, Date.now());
    if (!understood) throw new Error(`the oracle rejects ${JSON.stringify(event)}`);
    const { accountId, payload } = understood;
    if (payload.voided) return;
    // A book with one price finds it at once.
    const prices = EXAMPLE_BOOK.prices.filter((price) => price.billingDimension === payload.billingDimension);
    const cost = costUnder({ ...EXAMPLE_BOOK, prices }, { accountId, ...payload }) ?? 0n;
    const key = `${accountId} ${payload.billingDimension}`;
    const [costs, usages] = this.#totals.get(key) ?? [0n, 0n];
    this.#totals.set(key, [costs + cost, usages + payload.usage]);
    this.events += 1;
  }

  /** @param body the text of a response by dimension @returns the dimensions of the account that differ in any digit */
  differences(accountId: string, body: string): string[] {
    const entries = [...body.matchAll(ENTRY)];
    const shown = new Map(entries.map(([, dimension, cost, usage]) => [dimension, `${cost} ${usage}`]));
    return EXAMPLE_BOOK.prices.flatMap(({ billingDimension: dimension }) => {
      const [cost, usage] = this.#totals.get(`${accountId} ${dimension}`) ?? [0n, 0n];
      const due = `${printDecimal(cost, COST_DECIMALS)} ${printDecimal(usage, USAGE_DECIMALS)}`;
      const found = shown.get(dimension) ?? '0 0';
      return found === due ? [] : [`${accountId} ${dimension}: ${found} instead of ${due} (cost, usage)`];
    });
  }
}
