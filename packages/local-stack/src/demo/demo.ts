/**
 * Gives the demo account three months of history, and then what its workloads use as they run. Everything goes through the emitter to the
 * collector, like any runtime's events. The events of a span have the same ids whenever they are sent, so that sending one twice adds
 * nothing.
 */
import { setTimeout as delay } from 'node:timers/promises';
import { type EpochMs, MS_PER_DAY, MS_PER_HOUR, QUEUE_NAME, type UsageEventInput } from '@meterline/catalog';
import { type Emitter, openEmitter } from '@meterline/emitter';
import { createRedisClient } from '@meterline/service/access';
import { z } from 'zod';
import { readPrivateFile, writePrivateFile } from '../data-directory.js';
import { eventsOfSpan, SLICE_MS, spansUntil } from './fleet.js';

const HISTORY_DAYS = 92;
const POLL_MS = 100;
/** A stop of the stack does not wait longer for what the demo has not sent. */
const CLOSE_TIMEOUT_MS = 2_000;
/** How long the start waits for the history to be stored before it reports that this continues in the background. */
const HISTORY_TIMEOUT_MS = 60_000;

/** How far the history goes, so that the next start continues it. */
const stateSchema = z.object({
  /** Where the events are stored: another ClickHouse, or one that was emptied, has none of them. */
  databaseId: z.string(),
  /** The hour of the first start, which growth counts back from. */
  firstHour: z.number(),
  /** Spans before this instant are in the queue or beyond. */
  next: z.number(),
});
type DemoState = z.output<typeof stateSchema>;

/** How far the last start with this database came; before the first one there are three months to send. */
export async function readDemoState(file: string, databaseId: string, now: EpochMs): Promise<DemoState> {
  const kept = await readPrivateFile(file, stateSchema);
  if (kept?.databaseId === databaseId) return kept;
  const firstHour = now - (now % MS_PER_HOUR);
  return { databaseId, firstHour, next: firstHour - HISTORY_DAYS * MS_PER_DAY };
}

export interface DemoOptions {
  readonly collectorUrl: string;
  /** Of the account, with the role emitter. */
  readonly emitterKey: string;
  readonly account: string;
  /** Where the events then wait: the address of Redis is that of a user who may see the queue. */
  readonly queue: { readonly url: string; readonly prefix: string };
  /** Keeps how far the history goes. */
  readonly file: string;
  readonly databaseId: string;
  readonly say: (line: string) => void;
  /** Aborted when nothing more should be sent. */
  readonly stop: AbortSignal;
}

export class Demo {
  readonly #options: DemoOptions;
  readonly #meter: Emitter;
  #state: DemoState;
  #timer: NodeJS.Timeout | undefined;
  #ticking: Promise<void> = Promise.resolve();

  private constructor(options: DemoOptions, meter: Emitter, state: DemoState) {
    this.#options = options;
    this.#meter = meter;
    this.#state = state;
  }

  /** Resolves when the history has been stored, or after a minute. */
  static async start(options: DemoOptions): Promise<Demo> {
    const { collectorUrl, emitterKey, file, databaseId, say } = options;
    const now = Date.now();
    const state = await readDemoState(file, databaseId, now);
    const onProblem = ({ message }: { message: string }) => say(`The demo: ${message}`);
    const meter = await openEmitter({ url: collectorUrl, apiKey: emitterKey, onProblem });
    const demo = new Demo(options, meter, state);
    try {
      await demo.#catchUp(now);
    } catch (error) {
      await demo.stop();
      throw error;
    }
    demo.#timer = setInterval(() => demo.#tick(), SLICE_MS);
    return demo;
  }

  async stop(): Promise<void> {
    clearInterval(this.#timer);
    await this.#ticking;
    await this.#meter.close({ timeoutMs: CLOSE_TIMEOUT_MS });
  }

  async #catchUp(now: EpochMs): Promise<void> {
    const events = this.#eventsUntil(now);
    if (events.length === 0) return;
    this.#options.say(`Giving the demo account its history: ${events.length.toLocaleString('en-US')} events…`);
    for (const event of events) await this.#meter.recordWhenRoom(event);
    await this.#note(now);
    await this.#stored();
  }

  /** Resolves when the workers have taken everything, or after a minute. */
  async #stored(): Promise<void> {
    const { stop, say } = this.#options;
    const { url, prefix } = this.#options.queue;
    const redis = createRedisClient(url, { maxRetriesPerRequest: null });
    const lengthOf = (state: string) => redis.llen(`${prefix}:${QUEUE_NAME}:${state}`);
    const deadline = Date.now() + HISTORY_TIMEOUT_MS;
    try {
      while (!stop.aborted) {
        const jobs = await Promise.all([lengthOf('wait'), lengthOf('active')]);
        if (jobs.every((length) => length === 0)) return;
        if (Date.now() > deadline) return say('The history is still being stored; that goes on in the background.');
        await delay(POLL_MS);
      }
    } finally {
      redis.disconnect();
    }
  }

  #tick(): void {
    const now = Date.now();
    this.#ticking = this.#ticking
      .then(() => {
        for (const event of this.#eventsUntil(now)) this.#meter.record(event);
        return this.#note(now);
      })
      .catch((error: unknown) => this.#options.say(`The demo cannot write down how far it is: ${String(error)}`));
  }

  #eventsUntil(now: EpochMs): UsageEventInput[] {
    const { firstHour, next } = this.#state;
    return [...spansUntil(next, now)].flatMap((span) => eventsOfSpan(this.#options.account, span, firstHour));
  }

  /** Spans whose events are not accepted yet are recorded once more at the next tick, with the same ids. */
  async #note(now: EpochMs): Promise<void> {
    const last = [...spansUntil(this.#state.next, now)].at(-1);
    if (!last || !(await this.#meter.flush())) return;
    this.#state = { ...this.#state, next: last.to };
    await writePrivateFile(this.#options.file, this.#state);
  }
}
