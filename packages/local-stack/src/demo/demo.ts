/**
 * What the demo account uses: three months of made-up history that goes on hour by hour, and live traffic from the real
 * trace. Everything goes through the queue, like any runtime's events. Events of an hour have the same ids at every
 * start, so that sending an hour twice adds nothing.
 */
import { setTimeout as delay } from 'node:timers/promises';
import { type EpochMs, MS_PER_DAY, MS_PER_HOUR, QUEUE_NAME, type UsageEventInput } from '@meterline/catalog';
import { Queue } from 'bullmq';
import { z } from 'zod';
import { readPrivateFile, writePrivateFile } from '../private-file.js';
import { eventsOfHour, FLEET, TRACED_FLEET } from './fleet.js';
import { LiveTraffic } from './live-traffic.js';

const HISTORY_DAYS = 92;
const TICK_MS = 1_000;
const POLL_MS = 100;
const EVENTS_PER_JOB = 500;
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
  readonly redisUrl: string;
  readonly queuePrefix: string;
  readonly account: string;
  readonly progress: DemoProgress;
  readonly say: (line: string) => void;
  /** Aborted when nothing more should be sent. */
  readonly stop: AbortSignal;
}

export class Demo {
  readonly #options: DemoOptions;
  readonly #queue: Queue;
  readonly #live: LiveTraffic;
  #state: DemoState;
  #timer: NodeJS.Timeout | undefined;
  #ticking: Promise<void> = Promise.resolve();
  /** Live events that are not in Redis yet. */
  #unsent: UsageEventInput[] = [];
  #reported = false;

  private constructor(options: DemoOptions, state: DemoState, live: LiveTraffic) {
    this.#options = options;
    this.#state = state;
    this.#live = live;
    this.#queue = new Queue(QUEUE_NAME, { connection: { url: options.redisUrl }, prefix: options.queuePrefix });
    this.#queue.on('error', (error) => this.#reportError(error));
  }

  /** Resolves when the history has been stored, or after a minute. */
  static async start(options: DemoOptions): Promise<Demo> {
    const now = Date.now();
    const state = await readDemoState(options.progress, now);
    const demo = new Demo(options, state, await LiveTraffic.open(options.account, now));
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
    await this.#queue.close();
  }

  async #catchUp(now: EpochMs): Promise<void> {
    const { stop, say } = this.#options;
    const events = this.#hoursUntil(now);
    if (events.length === 0) return;
    say(`Giving the demo account its history: ${events.length.toLocaleString('en-US')} events…`);
    await this.#send(events);
    await this.#recordHour(now);
    const deadline = Date.now() + HISTORY_DEADLINE_MS;
    while (!stop.aborted) {
      const { waiting = 0, active = 0 } = await this.#queue.getJobCounts('waiting', 'active');
      if (waiting + active === 0) return;
      if (Date.now() > deadline) return say('The history is still being stored; that goes on in the background.');
      await delay(POLL_MS);
    }
  }

  #tick(): void {
    this.#ticking = this.#ticking.then(async () => {
      const now = Date.now();
      this.#unsent.push(...this.#live.until(now));
      try {
        await this.#send([...this.#hoursUntil(now), ...this.#unsent]);
        this.#unsent = [];
        await this.#recordHour(now);
        this.#reported = false;
      } catch (error) {
        this.#reportError(error);
      }
    });
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

  async #send(events: readonly UsageEventInput[]): Promise<void> {
    const jobs = [];
    for (let from = 0; from < events.length; from += EVENTS_PER_JOB) {
      jobs.push({ name: 'usage', data: { events: events.slice(from, from + EVENTS_PER_JOB) } });
    }
    if (jobs.length > 0) await this.#queue.addBulk(jobs);
  }

  async #recordHour(now: EpochMs): Promise<void> {
    const nextHour = now - (now % MS_PER_HOUR);
    if (nextHour === this.#state.nextHour) return;
    this.#state = { ...this.#state, nextHour };
    await writeDemoState(this.#options.progress, this.#state);
  }

  #reportError(error: unknown): void {
    if (!this.#reported) {
      const reason = error instanceof Error ? error.message : String(error);
      this.#options.say(`The demo cannot reach Redis (${reason}); it continues once Redis is back.`);
    }
    this.#reported = true;
  }
}
