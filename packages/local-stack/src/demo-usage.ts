/**
 * Generates the usage of the demo account as a pure function of workload and time. The events of a time span always have the same IDs, so
 * sending them again adds nothing.
 */
import {
  BUILT_IN_DIMENSION_NAMES,
  BUILT_IN_DIMENSIONS,
  type BuiltInDimension,
  type BuiltInResourceType,
  type EpochMs,
  MS_PER_DAY,
  MS_PER_HOUR,
  type UsageEventInput,
} from '@meterline/catalog';
import { v5 as uuidV5 } from 'uuid';

export const SLICE_MS = 10_000;
/** Length of the time spans in history older than {@link HOURLY_DAYS}. The web page shows it in daily bars, which need no shorter spans. */
const LONG_SPAN_MS = 6 * MS_PER_HOUR;
/** Days of history with spans of one hour, because the web page can show up to seven days by hour. */
const HOURLY_DAYS = 8;
const HISTORY_DAYS = 92;

type Rhythm = 'office' | 'night' | 'steady';

interface Workload {
  readonly name: string;
  readonly rhythm: Rhythm;
  /** Growth per 30 days. For example, 0.2 means 20 %. */
  readonly growth: number;
  /** First and last day of activity, in days before the first start (default: always active). */
  readonly ran?: readonly [from: number, to: number];
  readonly used: Readonly<Partial<Record<BuiltInDimension, number>>>;
}

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

const INSTANCES: readonly BuiltInResourceType[] = ['sandbox', 'volume'];

/** Time of the first start of the demo with a database. The growth and the activity of workloads are relative to this start's hour. */
export interface Origin {
  readonly firstHour: EpochMs;
  /** Start of live usage. It is within the first hour. */
  readonly liveFrom: EpochMs;
}

/** Returns the origin for a first start at this time. `next` is the start of the history. */
export function originAt(now: EpochMs): Origin & { readonly next: EpochMs } {
  const firstHour = now - (now % MS_PER_HOUR);
  return { firstHour, liveFrom: now - (now % SLICE_MS), next: firstHour - HISTORY_DAYS * MS_PER_DAY };
}

interface Span {
  readonly from: EpochMs;
  readonly to: EpochMs;
}

/**
 * Splits the time up to `now` into completed spans: six hours long in older history, then one hour long. The hour of the first start has
 * one span until that start. In the current hour, spans are {@link SLICE_MS} long. A later call continues at the end of the last span.
 */
export function* spansUntil(from: EpochMs, now: EpochMs, { firstHour, liveFrom }: Origin): Generator<Span> {
  const hourlyFrom = firstHour - HOURLY_DAYS * MS_PER_DAY;
  for (let start = from; ; ) {
    let to = start - (start % SLICE_MS) + SLICE_MS;
    if (start % MS_PER_HOUR === 0 && start + MS_PER_HOUR <= now) to = start + MS_PER_HOUR;
    if (start % LONG_SPAN_MS === 0 && start + LONG_SPAN_MS <= hourlyFrom) to = start + LONG_SPAN_MS;
    if (start === firstHour && firstHour < liveFrom) to = liveFrom;
    if (to > now) return;
    yield { from: start, to };
    start = to;
  }
}

export function eventsOfSpan(accountId: string, span: Span, origin: Origin): UsageEventInput[] {
  return FLEET.flatMap((workload) =>
    BUILT_IN_DIMENSION_NAMES.flatMap((dimension) => usageEvent(workload, dimension, accountId, span, origin)),
  );
}

function usageEvent(
  workload: Workload,
  billingDimension: BuiltInDimension,
  accountId: string,
  span: Span,
  { firstHour }: Origin,
): UsageEventInput[] {
  const amount = usageIn(span, workload, billingDimension, firstHour);
  const { resourceType, unit } = BUILT_IN_DIMENSIONS[billingDimension];
  const usage = unit === 'count' ? Math.round(amount) : amount.toFixed(6);
  if (Number(usage) === 0) return [];
  const [workspace = '', resourceName = ''] = workload.name.split('/');
  const source = `demo:${accountId}:${workload.name}`;
  const eventId = uuidV5(`${source}:${billingDimension}:${span.from}-${span.to}`, uuidV5.URL);
  const resourceUuid = INSTANCES.includes(resourceType) ? uuidV5(source, uuidV5.URL) : undefined;
  const timestamp = new Date(span.from + 1).toISOString();
  return [
    { eventId, accountId, workspace, resourceType, resourceName, resourceUuid, billingDimension, usage, timestamp },
  ];
}

/** Adds up the usage of all hours in the span. Each hour has its own activity, growth and noise. */
function usageIn({ from, to }: Span, workload: Workload, dimension: BuiltInDimension, firstHour: EpochMs): number {
  const { rhythm, growth, used, ran: [first, last] = ALWAYS } = workload;
  const hourly = used[dimension];
  if (!hourly) return 0;
  const isActivity = BUILT_IN_DIMENSIONS[dimension].unit === 'count' || dimension.endsWith('_compute_runtime_gbs');
  let total = 0;
  for (let start = from; start < to; start += MS_PER_HOUR) {
    const daysAgo = (firstHour - start) / MS_PER_DAY;
    if (daysAgo > first || daysAgo < last) continue;
    const hours = Math.min(MS_PER_HOUR, to - start) / MS_PER_HOUR;
    const grown = hourly * hours * (1 + growth) ** (-daysAgo / 30);
    total += isActivity ? grown * activity(rhythm, start) * (0.75 + 0.5 * noise(workload, dimension, start)) : grown;
  }
  return total;
}

function activity(rhythm: Rhythm, instant: EpochMs): number {
  const time = new Date(instant);
  const hour = time.getUTCHours();
  const isWeekend = time.getUTCDay() % 6 === 0;
  if (rhythm === 'steady') return 1;
  if (rhythm === 'night') return hour >= 1 && hour < 5 ? 1 : 0.02;
  const office = 0.15 + 0.85 * Math.max(0, Math.sin(((hour - 6) / 14) * Math.PI));
  return isWeekend ? office * 0.3 : office;
}

/** Returns a pseudorandom number in [0, 1) that depends only on the arguments and the hour. */
function noise(workload: Workload, dimension: BuiltInDimension, instant: EpochMs): number {
  const series =
    FLEET.indexOf(workload) * BUILT_IN_DIMENSION_NAMES.length + BUILT_IN_DIMENSION_NAMES.indexOf(dimension);
  const value = Math.sin(Math.floor(instant / MS_PER_HOUR) + series / 7) * 10_000;
  return value - Math.floor(value);
}
