/**
 * The made-up part of the demo: a small company's workloads. What each of them uses in an hour is a pure function of
 * its definition and the hour, so that the same hour always gives the same events.
 */
import { type BillingDimension, DIMENSIONS, type EpochMs, MS_PER_DAY, type UsageEventInput } from '@meterline/catalog';
import { URL_NAMESPACE, uuidV5 } from '../trace.js';

/** How busy a workload is over the week: people work in office hours, pipelines at night, storage always. */
type Rhythm = 'office' | 'night' | 'steady';

interface Workload {
  readonly workspace: string;
  readonly resourceName: string;
  /** Whether it has its own instance id. */
  readonly hasUuid?: boolean;
  /** Usage in a typical hour, per dimension, in the dimension's unit. */
  readonly hourly: Readonly<Partial<Record<BillingDimension, number>>>;
  readonly rhythm: Rhythm;
  /** Growth per 30 days: 0.2 is a fifth more. */
  readonly growth: number;
  /** Days before today at which it first ran and last ran; always when absent. */
  readonly lifetime?: { readonly from: number; readonly to: number };
}

const GB_HOUR = 3_600;

export const FLEET: readonly Workload[] = [
  {
    workspace: 'production',
    resourceName: 'support-agent',
    hourly: {
      agent_compute_runtime_gbs: 52_000,
      agent_async_requests_count: 1_900,
      agent_image_storage_gbs: 2 * GB_HOUR,
    },
    rhythm: 'office',
    growth: 0.22,
  },
  {
    workspace: 'production',
    resourceName: 'billing-agent',
    hourly: { agent_compute_runtime_gbs: 18_500, agent_async_requests_count: 640, agent_image_storage_gbs: GB_HOUR },
    rhythm: 'office',
    growth: 0.05,
  },
  {
    workspace: 'production',
    resourceName: 'search-tools',
    hourly: { mcp_server_compute_runtime_gbs: 9_400, mcp_server_image_storage_gbs: 1.5 * GB_HOUR },
    rhythm: 'office',
    growth: 0.15,
  },
  {
    workspace: 'production',
    resourceName: 'crm-connector',
    hourly: { mcp_server_compute_runtime_gbs: 3_100, mcp_server_image_storage_gbs: 0.8 * GB_HOUR },
    rhythm: 'office',
    growth: 0.4,
    lifetime: { from: 40, to: 0 },
  },
  {
    workspace: 'production',
    resourceName: 'customer-data',
    hasUuid: true,
    hourly: { volume_storage_gbs: 420 * GB_HOUR },
    rhythm: 'steady',
    growth: 0.08,
  },
  {
    workspace: 'production',
    resourceName: 'app.example.com',
    hourly: { custom_domain_active_time_hours: 1 },
    rhythm: 'steady',
    growth: 0,
  },
  {
    workspace: 'data',
    resourceName: 'nightly-report',
    hourly: { job_compute_runtime_gbs: 64_000, job_image_storage_gbs: 3 * GB_HOUR },
    rhythm: 'night',
    growth: 0.1,
  },
  {
    workspace: 'data',
    resourceName: 'embedding-refresh',
    hourly: { job_compute_runtime_gbs: 120_000, job_image_storage_gbs: 6 * GB_HOUR },
    rhythm: 'night',
    growth: 0.3,
    lifetime: { from: 62, to: 0 },
  },
  {
    workspace: 'data',
    resourceName: 'warehouse-cache',
    hasUuid: true,
    hourly: { volume_storage_gbs: 150 * GB_HOUR },
    rhythm: 'steady',
    growth: 0,
  },
  {
    workspace: 'staging',
    resourceName: 'pull-request-sandbox',
    hasUuid: true,
    hourly: { sandbox_compute_runtime_gbs: 14_000, sandbox_image_storage_gbs: 4 * GB_HOUR },
    rhythm: 'office',
    growth: 0.12,
  },
  {
    workspace: 'staging',
    resourceName: 'load-test-sandbox',
    hasUuid: true,
    hourly: { sandbox_compute_runtime_gbs: 88_000, sandbox_snapshot_storage_gbs: 12 * GB_HOUR },
    rhythm: 'night',
    growth: 0,
    lifetime: { from: 33, to: 26 },
  },
  {
    workspace: 'staging',
    resourceName: 'notebook-sandbox',
    hasUuid: true,
    hourly: { sandbox_compute_runtime_gbs: 6_200, sandbox_snapshot_storage_gbs: 9 * GB_HOUR },
    rhythm: 'office',
    growth: -0.1,
  },
];

/** The real trace's two services, before its replay takes over: about what one of its hours uses. */
export const TRACED_FLEET: readonly Workload[] = [
  {
    workspace: 'code',
    resourceName: 'code',
    hourly: { agent_async_requests_count: 8_800, agent_compute_runtime_gbs: 8_700 },
    rhythm: 'office',
    growth: 0.18,
  },
  {
    workspace: 'conv',
    resourceName: 'conv',
    hourly: { agent_async_requests_count: 19_300, agent_compute_runtime_gbs: 101_000 },
    rhythm: 'office',
    growth: 0.25,
  },
];

/**
 * The events of one hour, one for each workload and dimension.
 * @param hour the start of a UTC hour
 * @param today what growth and lifetimes count back from; it must stay the same between starts
 */
export function eventsOfHour(
  fleet: readonly Workload[],
  accountId: string,
  hour: EpochMs,
  today: EpochMs,
): UsageEventInput[] {
  const daysAgo = (today - hour) / MS_PER_DAY;
  return fleet
    .filter(({ lifetime }) => !lifetime || (daysAgo <= lifetime.from && daysAgo >= lifetime.to))
    .flatMap((workload) =>
      BILLED.filter((dimension) => workload.hourly[dimension] !== undefined).map((dimension) =>
        usageEvent(workload, dimension, accountId, hour, daysAgo),
      ),
    );
}

const BILLED = Object.keys(DIMENSIONS) as BillingDimension[];

function usageEvent(
  workload: Workload,
  billingDimension: BillingDimension,
  accountId: string,
  hour: EpochMs,
  daysAgo: number,
): UsageEventInput {
  const { workspace, resourceName, hasUuid, hourly, rhythm, growth } = workload;
  const { resourceType, unit } = DIMENSIONS[billingDimension];
  const eventId = uuidV5(URL_NAMESPACE, `demo:${accountId}:${workspace}/${resourceName}:${billingDimension}:${hour}`);
  const isActivity = unit === 'count' || billingDimension.endsWith('_compute_runtime_gbs');
  const grown = (hourly[billingDimension] ?? 0) * (1 + growth) ** (-daysAgo / 30);
  const usage = isActivity ? grown * activity(rhythm, hour) * (0.75 + 0.5 * noise(eventId)) : grown;
  return {
    eventId,
    accountId,
    workspace,
    resourceType,
    resourceName,
    ...(hasUuid && { resourceUuid: uuidV5(URL_NAMESPACE, `demo:${workspace}/${resourceName}`) }),
    billingDimension,
    usage: unit === 'gbs' ? usage.toFixed(3) : Math.max(1, Math.round(usage)),
    timestamp: new Date(hour + 1).toISOString(),
  };
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
