/**
 * Gives the demo account three months of history, and then the usage of its workloads as they run. All events go through the emitter to the
 * collector, like those of any runtime.
 */
import { setTimeout as delay } from 'node:timers/promises';
import { type EpochMs, QUEUE_NAME } from '@meterline/catalog';
import { type Emitter, openEmitter } from '@meterline/emitter';
import { createRedisClient, REDIS_POLICIES } from '@meterline/service/access';
import { z } from 'zod';
import { readPrivateFile, writePrivateFile } from './data-directory.js';
import { eventsOfSpan, originAt, SLICE_MS, spansUntil } from './demo-usage.js';

const POLL_MS = 100;
/** The start waits for this number of events to be stored, and says so: more than a minute of live traffic. */
const HISTORY_EVENTS = 200;
/** How long a stop of the stack waits for unsent events. */
const CLOSE_TIMEOUT_MS = 2_000;
/** How long the start waits for the history to be sent, and again for it to be stored, before it goes on in the background. */
const HISTORY_TIMEOUT_MS = 60_000;

/** The progress of the demo, so that the next start continues it. */
const stateSchema = z
  .object({
    /** The database that has the events. Another one, or one that was emptied, needs the whole history. */
    databaseId: z.string(),
    firstHour: z.number(),
    liveFrom: z.number().optional(),
    /** Events before this instant are in the queue or in the database. */
    next: z.number(),
  })
  // Earlier versions reported live from the hour on.
  .transform((state) => ({ ...state, liveFrom: state.liveFrom ?? state.firstHour }));
type DemoState = z.output<typeof stateSchema>;

/**
 * Returns the progress of earlier starts with this database. The first one has three months to send, and saves that before it sends an event:
 * a start that continues the history must divide it into the same spans.
 */
export async function openDemoState(file: string, databaseId: string, now: EpochMs): Promise<DemoState> {
  const kept = await readPrivateFile(file, stateSchema);
  if (kept?.databaseId === databaseId) return kept;
  const state = { databaseId, ...originAt(now) };
  await writePrivateFile(file, state);
  return state;
}

export interface DemoOptions {
  readonly collectorUrl: string;
  /** A key of the account, with the role emitter. */
  readonly emitterKey: string;
  readonly account: string;
  /** The queue of the events. `url` is the address of Redis for a user who may see the queue. */
  readonly queue: { readonly url: string; readonly prefix: string };
  /** Keeps the progress. */
  readonly file: string;
  readonly databaseId: string;
  readonly say: (line: string) => void;
  /** Aborted when nothing more should be sent. */
  readonly stop: AbortSignal;
}

export class Demo {
  #timer: NodeJS.Timeout | undefined;
  #sending: Promise<unknown> = Promise.resolve();

  private constructor(
    private readonly options: DemoOptions,
    private readonly meter: Emitter,
    private state: DemoState,
  ) {}

  /** Resolves when the history is stored, at the latest after two minutes. */
  static async start(options: DemoOptions): Promise<Demo> {
    const { collectorUrl, emitterKey, file, databaseId, say } = options;
    const state = await openDemoState(file, databaseId, Date.now());
    const onProblem = ({ message }: { message: string }) => say(`The demo: ${message}`);
    const meter = await openEmitter({ url: collectorUrl, apiKey: emitterKey, onProblem });
    const demo = new Demo(options, meter, state);
    try {
      if (await demo.#send()) await demo.#stored();
    } catch (error) {
      await demo.stop();
      throw error;
    }
    demo.#timer = setInterval(() => {
      demo.#sending = demo.#sending
        .then(() => demo.#send())
        .catch((error: unknown) => say(`The demo cannot save its progress: ${String(error)}`));
    }, SLICE_MS);
    return demo;
  }

  async stop(): Promise<void> {
    clearInterval(this.#timer);
    // The emitter first: sending may wait for a collector that is away.
    await this.meter.close({ timeoutMs: CLOSE_TIMEOUT_MS });
    await this.#sending;
  }

  /** Sends the spans that are over. If not all their events are accepted, the next call sends them again, with the same ids. @returns whether they are history */
  async #send(): Promise<boolean> {
    const { account, file, say } = this.options;
    const spans = [...spansUntil(this.state.next, Date.now(), this.state)];
    const events = spans.flatMap((span) => eventsOfSpan(account, span, this.state));
    const isHistory = events.length >= HISTORY_EVENTS;
    if (isHistory) {
      say(`Giving the demo account its history: ${events.length.toLocaleString('en-US')} events…`);
    }
    const areRecorded = events.every((event) => this.meter.record(event) !== undefined);
    const last = spans.at(-1);
    const areSent = await this.meter.flush({ timeoutMs: HISTORY_TIMEOUT_MS });
    // After a stop the emitter is empty, whether or not it has sent the events.
    if (!last || !areRecorded || !areSent || this.options.stop.aborted) return isHistory;
    this.state = { ...this.state, next: last.to };
    await writePrivateFile(file, this.state);
    return isHistory;
  }

  /** Resolves when the queue is empty, at the latest after a minute. */
  async #stored(): Promise<void> {
    const { stop, say } = this.options;
    const { url, prefix } = this.options.queue;
    const redis = createRedisClient(url, REDIS_POLICIES.worker);
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
}
