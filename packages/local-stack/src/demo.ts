/**
 * Gives the demo account three months of history, and then what its workloads use as they run. Everything goes through the emitter to the
 * collector, like any runtime's events. The usage of a span of time is a pure function of the workloads and the span: its events have the same
 * ids whenever they are sent, so that sending one twice adds nothing.
 */
import { setTimeout as delay } from 'node:timers/promises';
import {
  BILLING_DIMENSIONS,
  type BillingDimension,
  DIMENSIONS,
  type EpochMs,
  MS_PER_DAY,
  MS_PER_HOUR,
  QUEUE_NAME,
  type ResourceType,
  type UsageEventInput,
} from '@meterline/catalog';
import { type Emitter, openEmitter } from '@meterline/emitter';
import { createRedisClient } from '@meterline/service/access';
import { v5 as uuidV5 } from 'uuid';
import { z } from 'zod';
import { readPrivateFile, writePrivateFile } from './data-directory.js';

/** How often running workloads report. */
export const SLICE_MS = 10_000;

/** How busy a workload is over the week: people work in office hours, pipelines at night, storage always. */
type Rhythm = 'office' | 'night' | 'steady';

interface Workload {
  /** Workspace and resource. */
  readonly name: string;
  readonly rhythm: Rhythm;
  /** Per 30 days: 0.2 is a fifth more. */
  readonly growth: number;
  /** Days before today at which it first ran and last ran; always when absent. */
  readonly ran?: readonly [from: number, to: number];
  /** In a typical hour, in the dimension's unit. */
  readonly used: Readonly<Partial<Record<BillingDimension, number>>>;
}

/** Gigabytes that are stored for an hour, in GB-seconds. */
const stored = (gigabytes: number) => gigabytes * 3_600;
const agent = (compute: number, requests: number, image: number) => ({
  agent_compute_runtime_gbs: compute,
  agent_async_requests_count: requests,
  agent_image_storage_gbs: stored(image),
});
const server = (compute: number, image: number) => ({
  mcp_server_compute_runtime_gbs: compute,
  mcp_server_image_storage_gbs: stored(image),
});
const job = (compute: number, image: number) => ({
  job_compute_runtime_gbs: compute,
  job_image_storage_gbs: stored(image),
});
const sandbox = (compute: number, image: number, snapshots: number) => ({
  sandbox_compute_runtime_gbs: compute,
  sandbox_image_storage_gbs: stored(image),
  sandbox_snapshot_storage_gbs: stored(snapshots),
});
const volume = (gigabytes: number) => ({ volume_storage_gbs: stored(gigabytes) });

const ALWAYS = [Number.POSITIVE_INFINITY, Number.NEGATIVE_INFINITY] as const;

const FLEET: readonly Workload[] = [
  { name: 'production/support-agent', rhythm: 'office', growth: 0.22, used: agent(52_000, 1_900, 2) },
  { name: 'production/billing-agent', rhythm: 'office', growth: 0.05, used: agent(18_500, 640, 1) },
  { name: 'production/search-tools', rhythm: 'office', growth: 0.15, used: server(9_400, 1.5) },
  { name: 'production/crm-connector', rhythm: 'office', growth: 0.4, ran: [40, 0], used: server(3_100, 0.8) },
  { name: 'production/customer-data', rhythm: 'steady', growth: 0.08, used: volume(420) },
  { name: 'production/app.example.com', rhythm: 'steady', growth: 0, used: { custom_domain_active_time_hours: 1 } },
  { name: 'data/nightly-report', rhythm: 'night', growth: 0.1, used: job(64_000, 3) },
  { name: 'data/embedding-refresh', rhythm: 'night', growth: 0.3, ran: [62, 0], used: job(120_000, 6) },
  { name: 'data/warehouse-cache', rhythm: 'steady', growth: 0, used: volume(150) },
  { name: 'staging/pull-request-sandbox', rhythm: 'office', growth: 0.12, used: sandbox(14_000, 4, 0) },
  { name: 'staging/load-test-sandbox', rhythm: 'night', growth: 0, ran: [33, 26], used: sandbox(88_000, 0, 12) },
  { name: 'staging/notebook-sandbox', rhythm: 'office', growth: -0.1, used: sandbox(6_200, 0, 9) },
  { name: 'assistants/code-completion', rhythm: 'office', growth: 0.18, used: agent(8_700, 8_800, 0) },
  { name: 'assistants/chat', rhythm: 'office', growth: 0.25, used: agent(101_000, 19_300, 0) },
];

/** Their resources have instance ids. */
const INSTANCES: readonly ResourceType[] = ['sandbox', 'volume'];

interface Span {
  readonly from: EpochMs;
  readonly to: EpochMs;
}

/** The spans that are over: whole hours where they lie behind, and slices of {@link SLICE_MS} in the hour that runs. */
export function* spansUntil(from: EpochMs, now: EpochMs): Generator<Span> {
  for (let start = from; ; ) {
    const isPastHour = start % MS_PER_HOUR === 0 && start + MS_PER_HOUR <= now;
    const to = isPastHour ? start + MS_PER_HOUR : start - (start % SLICE_MS) + SLICE_MS;
    if (to > now) return;
    yield { from: start, to };
    start = to;
  }
}

/**
 * The events of a span, one for each workload and dimension that is used in it.
 * @param today what growth and lifetimes count back from; it must stay the same between starts
 */
export function eventsOfSpan(accountId: string, span: Span, today: EpochMs): UsageEventInput[] {
  const daysAgo = (today - span.from) / MS_PER_DAY;
  const running = FLEET.filter(({ ran: [from, to] = ALWAYS }) => daysAgo <= from && daysAgo >= to);
  return running.flatMap((workload) =>
    BILLING_DIMENSIONS.flatMap((dimension) => usageEvent(workload, dimension, accountId, span, daysAgo)),
  );
}

/** None where nothing is used, or a count is zero. */
function usageEvent(
  { name, rhythm, growth, used }: Workload,
  billingDimension: BillingDimension,
  accountId: string,
  { from, to }: Span,
  daysAgo: number,
): UsageEventInput[] {
  const hourly = used[billingDimension];
  if (!hourly) return [];
  const { resourceType, unit } = DIMENSIONS[billingDimension];
  const [workspace = '', resourceName = ''] = name.split('/');
  const source = `demo:${accountId}:${name}`;
  const eventId = uuidV5(`${source}:${billingDimension}:${from}-${to}`, uuidV5.URL);
  const isActivity = unit === 'count' || billingDimension.endsWith('_compute_runtime_gbs');
  const grown = ((hourly * (to - from)) / MS_PER_HOUR) * (1 + growth) ** (-daysAgo / 30);
  const amount = isActivity ? grown * activity(rhythm, from) * (0.75 + 0.5 * noise(eventId)) : grown;
  const usage = unit === 'count' ? Math.round(amount) : amount.toFixed(6);
  if (Number(usage) === 0) return [];
  const resourceUuid = INSTANCES.includes(resourceType) ? uuidV5(source, uuidV5.URL) : undefined;
  const timestamp = new Date(from + 1).toISOString();
  return [
    { eventId, accountId, workspace, resourceType, resourceName, resourceUuid, billingDimension, usage, timestamp },
  ];
}

/** The share of its typical use that a workload reaches in an hour of the week. */
function activity(rhythm: Rhythm, instant: EpochMs): number {
  const time = new Date(instant);
  const hour = time.getUTCHours();
  const isWeekend = time.getUTCDay() % 6 === 0;
  if (rhythm === 'steady') return 1;
  if (rhythm === 'night') return hour >= 1 && hour < 5 ? 1 : 0.02;
  const office = 0.15 + 0.85 * Math.max(0, Math.sin(((hour - 6) / 14) * Math.PI));
  return isWeekend ? office * 0.3 : office;
}

/** A number in [0, 1) that is the same for the same event. */
function noise(eventId: string): number {
  return Number.parseInt(eventId.slice(-8), 16) / 2 ** 32;
}

const HISTORY_DAYS = 92;
const POLL_MS = 100;
/** More than a minute of live traffic is history, which is said. */
const HISTORY_EVENTS = 200;
/** A stop of the stack does not wait longer for what the demo has not sent. */
const CLOSE_TIMEOUT_MS = 2_000;
/** How long the start waits for the history to be sent, and then to be stored, before both go on in the background. */
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
  /** A key of the account, with the role emitter. */
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
  #timer: NodeJS.Timeout | undefined;
  #sending: Promise<unknown> = Promise.resolve();

  private constructor(
    private readonly options: DemoOptions,
    private readonly meter: Emitter,
    private state: DemoState,
  ) {}

  /** Resolves when the history has been stored, or after two minutes. */
  static async start(options: DemoOptions): Promise<Demo> {
    const { collectorUrl, emitterKey, file, databaseId, say } = options;
    const state = await readDemoState(file, databaseId, Date.now());
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
        .catch((error: unknown) => say(`The demo cannot write down how far it is: ${String(error)}`));
    }, SLICE_MS);
    return demo;
  }

  async stop(): Promise<void> {
    clearInterval(this.#timer);
    // First, because sending may wait for a collector that is away.
    await this.meter.close({ timeoutMs: CLOSE_TIMEOUT_MS });
    await this.#sending;
  }

  /** Spans whose events are not accepted yet are sent once more at the next time, with the same ids. @returns whether there were events */
  async #send(): Promise<boolean> {
    const { account, file, say } = this.options;
    const spans = [...spansUntil(this.state.next, Date.now())];
    const events = spans.flatMap((span) => eventsOfSpan(account, span, this.state.firstHour));
    if (events.length >= HISTORY_EVENTS) {
      say(`Giving the demo account its history: ${events.length.toLocaleString('en-US')} events…`);
    }
    for (const event of events) await this.meter.recordWhenRoom(event);
    const last = spans.at(-1);
    // After a stop the emitter holds nothing, whether or not it was sent.
    if (!last || !(await this.meter.flush({ timeoutMs: HISTORY_TIMEOUT_MS })) || this.options.stop.aborted)
      return last !== undefined;
    this.state = { ...this.state, next: last.to };
    await writePrivateFile(file, this.state);
    return true;
  }

  /** Resolves when the workers have taken everything, or after a minute. */
  async #stored(): Promise<void> {
    const { stop, say } = this.options;
    const { url, prefix } = this.options.queue;
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
}
