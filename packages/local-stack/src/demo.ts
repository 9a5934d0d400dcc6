/** Sends three months of history for the demo account, and then live usage, through an emitter and the collector like any events. */
import { setTimeout as delay } from 'node:timers/promises';
import { type EpochMs, QUEUE_NAME } from '@meterline/catalog';
import { type Emitter, openEmitter } from '@meterline/emitter';
import { createRedisClient, REDIS_POLICIES } from '@meterline/service/access';
import { z } from 'zod';
import { readPrivateFile, writePrivateFile } from './data-directory.js';
import { eventsOfSpan, originAt, SLICE_MS, spansUntil } from './demo-usage.js';

const POLL_MS = 100;
/** At least this many events count as history, and the start waits until they are stored. A minute of live usage has fewer events. */
const HISTORY_EVENTS = 200;
const CLOSE_TIMEOUT_MS = 2_000;
/** Maximum time that the start waits until the history is sent, and again until it is stored. The rest continues in the background. */
const HISTORY_TIMEOUT_MS = 60_000;

const stateSchema = z
  .object({
    /** ID of the database with the events. A new or emptied database has another ID and needs the whole history. */
    databaseId: z.string(),
    firstHour: z.number(),
    liveFrom: z.number().optional(),
    /** The collector has accepted all events before this time. */
    next: z.number(),
  })
  // Earlier versions did not save `liveFrom`. Their live usage started at the first hour.
  .transform((state) => ({ ...state, liveFrom: state.liveFrom ?? state.firstHour }));
type DemoState = z.output<typeof stateSchema>;

/**
 * Returns the progress of earlier starts with this database. A first start saves its time before it sends any event, because later starts
 * must split the history into the same time spans.
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
  readonly emitterKey: string;
  readonly account: string;
  /** The event queue. `url` is the Redis URL of a user that can access the queue. */
  readonly queue: { readonly url: string; readonly prefix: string };
  readonly file: string;
  readonly databaseId: string;
  readonly say: (line: string) => void;
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

  /** Starts the demo. Resolves when the history is stored, or after at most two minutes. */
  static async start(options: DemoOptions): Promise<Demo> {
    const { collectorUrl, emitterKey, file, databaseId, say } = options;
    const state = await openDemoState(file, databaseId, Date.now());
    const onProblem = ({ message }: { message: string }) => say(`Demo: ${message}`);
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
    // Close the emitter first, because `#sending` may be waiting for an unreachable collector.
    await this.meter.close({ timeoutMs: CLOSE_TIMEOUT_MS });
    await this.#sending;
  }

  /**
   * Sends the completed spans. If the collector does not accept all events, the next call sends the same events again with the same IDs.
   * @returns whether there were enough events to count as history
   */
  async #send(): Promise<boolean> {
    const { account, file, say } = this.options;
    const spans = [...spansUntil(this.state.next, Date.now(), this.state)];
    const events = spans.flatMap((span) => eventsOfSpan(account, span, this.state));
    const isHistory = events.length >= HISTORY_EVENTS;
    if (isHistory) {
      say(`Sending the history of the demo account: ${events.length.toLocaleString('en-US')} events…`);
    }
    const areRecorded = events.every((event) => this.meter.record(event) !== undefined);
    const last = spans.at(-1);
    const areSent = await this.meter.flush({ timeoutMs: HISTORY_TIMEOUT_MS });
    // After `stop`, do not save progress: `areSent` may then only mean that the emitter was closed, and has nothing left to send.
    if (!last || !areRecorded || !areSent || this.options.stop.aborted) return isHistory;
    this.state = { ...this.state, next: last.to };
    await writePrivateFile(file, this.state);
    return isHistory;
  }

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
        if (Date.now() > deadline) return say('The history is still being stored in the background.');
        await delay(POLL_MS);
      }
    } finally {
      redis.disconnect();
    }
  }
}
