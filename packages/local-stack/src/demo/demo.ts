/**
 * What the demo account uses: three months of made-up history that goes on hour by hour, and live traffic from the real
 * trace. Everything goes through the emitter to the collector, like any runtime's events. Events of an hour have the same ids at every
 * start, so that sending an hour twice adds nothing.
 */
import { setTimeout as delay } from 'node:timers/promises';
import { createRedisClient } from '@meterline/access';
import {
  type EpochMs,
  MS_PER_DAY,
  MS_PER_HOUR,
  QUEUE_NAME,
  queuePrefixOf,
  type UsageEventInput,
} from '@meterline/catalog';
import { type Emitter, openEmitter } from '@meterline/emitter';
import { findShards } from '@meterline/service/queue';
import { z } from 'zod';
import { readPrivateFile, writePrivateFile } from '../private-file.js';
import { eventsOfHour, FLEET, TRACED_FLEET } from './fleet.js';
import { LiveTraffic } from './live-traffic.js';

const HISTORY_DAYS = 92;
const TICK_MS = 1_000;
const POLL_MS = 100;
/** A stop of the stack does not wait longer for what the demo has not sent. */
const CLOSE_WITHIN_MS = 2_000;
/** How long the start waits for the history to be stored before it reports that this continues in the background. */
const HISTORY_DEADLINE_MS = 60_000;

const stateSchema = z.object({
  /** The hour of the first start: before it there is history, from it on the trace plays live. */
  firstHour: z.number(),
  /** The fleet's hours before this one are in the queue or beyond. */
  nextHour: z.number(),
});
type DemoState = z.output<typeof stateSchema>;

const fileSchema = z.record(z.string(), stateSchema);

/**
 * Where a demo keeps how far its history goes, so that the next start continues it. Each database has its own entry:
 * the next start may use another ClickHouse, or one that was emptied.
 */
export interface DemoProgress {
  readonly file: string;
  /** Identifies the database in which the events are stored. */
  readonly databaseId: string;
}

/** How far the last start with this database came; before the first one there are three months to send. */
export async function readDemoState({ file, databaseId }: DemoProgress, now: EpochMs): Promise<DemoState> {
  const thisHour = now - (now % MS_PER_HOUR);
  const first = { firstHour: thisHour, nextHour: thisHour - HISTORY_DAYS * MS_PER_DAY };
  return (await readPrivateFile(file, fileSchema))?.[databaseId] ?? first;
}

export async function writeDemoState({ file, databaseId }: DemoProgress, state: DemoState): Promise<void> {
  await writePrivateFile(file, { ...(await readPrivateFile(file, fileSchema)), [databaseId]: state });
}

export interface DemoOptions {
  readonly collectorUrl: string;
  /** Of the account, with the role emitter. */
  readonly emitterKey: string;
  readonly account: string;
  /** Where the events then wait: the address of Redis is that of a user who may see the queue. */
  readonly queue: { readonly url: string; readonly prefix: string };
  readonly progress: DemoProgress;
  readonly say: (line: string) => void;
  /** Aborted when nothing more should be sent. */
  readonly stop: AbortSignal;
}

export class Demo {
  readonly #options: DemoOptions;
  readonly #meter: Emitter;
  readonly #live: LiveTraffic;
  #state: DemoState;
  #timer: NodeJS.Timeout | undefined;
  #ticking: Promise<void> = Promise.resolve();

  private constructor(options: DemoOptions, meter: Emitter, state: DemoState, live: LiveTraffic) {
    this.#options = options;
    this.#meter = meter;
    this.#state = state;
    this.#live = live;
  }

  /** Resolves when the history has been stored, or after a minute. */
  static async start(options: DemoOptions): Promise<Demo> {
    const { collectorUrl, emitterKey, account, progress, say } = options;
    const now = Date.now();
    const [state, live] = await Promise.all([readDemoState(progress, now), LiveTraffic.open(account, now)]);
    const onProblem = ({ message }: { message: string }) => say(`The demo: ${message}`);
    const meter = await openEmitter({ url: collectorUrl, apiKey: emitterKey, onProblem });
    const demo = new Demo(options, meter, state, live);
    try {
      await demo.#catchUp(now);
    } catch (error) {
      await demo.stop();
      throw error;
    }
    demo.#timer = setInterval(() => demo.#tick(), TICK_MS);
    return demo;
  }

  async stop(): Promise<void> {
    clearInterval(this.#timer);
    await this.#ticking;
    await this.#meter.close({ timeoutMs: CLOSE_WITHIN_MS });
  }

  async #catchUp(now: EpochMs): Promise<void> {
    const events = this.#hoursUntil(now);
    if (events.length === 0) return;
    this.#options.say(`Giving the demo account its history: ${events.length.toLocaleString('en-US')} events…`);
    for (const event of events) await this.#meter.recordWhenRoom(event);
    await this.#noteHour(now);
    await this.#stored();
  }

  /** Resolves when the workers have taken everything, or after a minute. */
  async #stored(): Promise<void> {
    const { stop, say } = this.#options;
    const { url, prefix } = this.#options.queue;
    const redis = createRedisClient(url, { maxRetriesPerRequest: null });
    const lengthOf = (shard: number, state: string) =>
      redis.llen(`${queuePrefixOf(prefix, shard, redis.isCluster)}:${QUEUE_NAME}:${state}`);
    const deadline = Date.now() + HISTORY_DEADLINE_MS;
    try {
      while (!stop.aborted) {
        const shards = await findShards(redis, prefix);
        const jobs = await Promise.all(shards.flatMap((shard) => [lengthOf(shard, 'wait'), lengthOf(shard, 'active')]));
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
        for (const event of [...this.#live.until(now), ...this.#hoursUntil(now)]) this.#meter.record(event);
        return this.#noteHour(now);
      })
      .catch((error: unknown) => this.#options.say(`The demo cannot write down how far it is: ${String(error)}`));
  }

  /** The fleet reports an hour once it is over. */
  #hoursUntil(now: EpochMs): UsageEventInput[] {
    const { firstHour, nextHour } = this.#state;
    const { account } = this.#options;
    const events: UsageEventInput[] = [];
    for (let hour = nextHour; hour + MS_PER_HOUR <= now; hour += MS_PER_HOUR) {
      events.push(...eventsOfHour(FLEET, account, hour, firstHour));
      if (hour < firstHour) events.push(...eventsOfHour(TRACED_FLEET, account, hour, firstHour));
    }
    return events;
  }

  /** Hours whose events are not accepted yet are recorded once more at the next tick, with the same ids. */
  async #noteHour(now: EpochMs): Promise<void> {
    const nextHour = now - (now % MS_PER_HOUR);
    if (nextHour === this.#state.nextHour || !(await this.#meter.flush())) return;
    this.#state = { ...this.#state, nextHour };
    await writeDemoState(this.#options.progress, this.#state);
  }
}
