/**
 * What the demo account uses: three months of made-up history that goes on hour by hour, and live traffic from the real
 * trace. Everything goes through the queue, like any runtime's events. Events of an hour have the same ids at every
 * start, so that sending an hour twice adds nothing.
 */
import { setTimeout as delay } from 'node:timers/promises';
import { type EpochMs, MS_PER_HOUR, QUEUE_NAME, type UsageEventInput } from '@meterline/catalog';
import { Queue } from 'bullmq';
import { type DemoNote, type DemoState, readDemoState, writeDemoState } from './demo-state.js';
import { eventsOfHour, FLEET, TRACED_FLEET } from './fleet.js';
import { LiveTraffic } from './live-traffic.js';

const TICK_MS = 1_000;
const POLL_MS = 100;
const EVENTS_PER_JOB = 500;
/** How long the start waits for the history to be taken in before it says that it goes on in the background. */
const INTAKE_DEADLINE_MS = 60_000;

export interface DemoOptions {
  readonly redisUrl: string;
  readonly queuePrefix: string;
  readonly account: string;
  readonly note: DemoNote;
  readonly say: (line: string) => void;
  /** Aborted when nothing more should be sent. */
  readonly stop: AbortSignal;
  readonly clock?: () => EpochMs;
}

export class Demo {
  readonly #options: DemoOptions;
  readonly #clock: () => EpochMs;
  readonly #queue: Queue;
  readonly #live: LiveTraffic;
  #state: DemoState;
  #timer: NodeJS.Timeout | undefined;
  #ticking: Promise<void> = Promise.resolve();
  /** Live events that Redis has not taken yet. */
  #unsent: UsageEventInput[] = [];
  #complained = false;

  private constructor(options: DemoOptions, clock: () => EpochMs, state: DemoState, live: LiveTraffic) {
    this.#options = options;
    this.#clock = clock;
    this.#state = state;
    this.#live = live;
    this.#queue = new Queue(QUEUE_NAME, { connection: { url: options.redisUrl }, prefix: options.queuePrefix });
    this.#queue.on('error', (error) => this.#complain(error));
  }

  /** Resolves when the history has been taken in, or after a minute. */
  static async start(options: DemoOptions): Promise<Demo> {
    const clock = options.clock ?? Date.now;
    const state = await readDemoState(options.note, clock());
    const demo = new Demo(options, clock, state, await LiveTraffic.open(options.account, clock()));
    try {
      await demo.#catchUp(clock());
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
    await this.#noteHour(now);
    const deadline = Date.now() + INTAKE_DEADLINE_MS;
    while (!stop.aborted) {
      const { waiting = 0, active = 0 } = await this.#queue.getJobCounts('waiting', 'active');
      if (waiting + active === 0) return;
      if (Date.now() > deadline) return say('The history is still being taken in; it goes on meanwhile.');
      await delay(POLL_MS);
    }
  }

  #tick(): void {
    this.#ticking = this.#ticking.then(async () => {
      const now = this.#clock();
      this.#unsent.push(...this.#live.until(now));
      try {
        await this.#send([...this.#hoursUntil(now), ...this.#unsent]);
        this.#unsent = [];
        await this.#noteHour(now);
        this.#complained = false;
      } catch (error) {
        this.#complain(error);
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

  async #noteHour(now: EpochMs): Promise<void> {
    const nextHour = now - (now % MS_PER_HOUR);
    if (nextHour === this.#state.nextHour) return;
    this.#state = { ...this.#state, nextHour };
    await writeDemoState(this.#options.note, this.#state);
  }

  #complain(error: unknown): void {
    if (!this.#complained) {
      const reason = error instanceof Error ? error.message : String(error);
      this.#options.say(`The demo cannot reach Redis (${reason}); it goes on once Redis is back.`);
    }
    this.#complained = true;
  }
}
