/** Traffic to look at: a small made-up fleet whose workloads report their compute time every second. */
import { randomInt, randomUUID } from 'node:crypto';
import { type BillingDimension, QUEUE_NAME, type ResourceType, type UsageEventInput } from '@meterline/catalog';
import { Queue } from 'bullmq';

const PERIOD_MS = 1_000;
const MAX_MEMORY_GB = 16;

interface Workload {
  readonly workspace: string;
  readonly resourceType: ResourceType;
  readonly resourceName: string;
  readonly billingDimension: BillingDimension;
}

const FLEET: readonly Workload[] = [
  {
    workspace: 'production',
    resourceType: 'agent',
    resourceName: 'support-agent',
    billingDimension: 'agent_compute_runtime_gbs',
  },
  {
    workspace: 'production',
    resourceType: 'mcp_server',
    resourceName: 'search-tools',
    billingDimension: 'mcp_server_compute_runtime_gbs',
  },
  {
    workspace: 'production',
    resourceType: 'job',
    resourceName: 'nightly-report',
    billingDimension: 'job_compute_runtime_gbs',
  },
  {
    workspace: 'staging',
    resourceType: 'sandbox',
    resourceName: 'pull-request',
    billingDimension: 'sandbox_compute_runtime_gbs',
  },
];

export interface Demo {
  stop(): Promise<void>;
}

export function startDemo(redisUrl: string, account: string, say: (line: string) => void): Demo {
  const queue = new Queue(QUEUE_NAME, { connection: { url: redisUrl } });
  let complained = false;
  const complain = (error: Error) => {
    if (!complained) say(`The demo cannot reach Redis (${error.message}); it goes on once Redis is back.`);
    complained = true;
  };
  queue.on('error', complain);
  const playing = setInterval(() => {
    const events = FLEET.map((workload) => usageEvent(workload, account, new Date()));
    queue.add('usage', { events }, { removeOnComplete: true }).then(() => {
      complained = false;
    }, complain);
  }, PERIOD_MS);
  return {
    async stop() {
      clearInterval(playing);
      await queue.close();
    },
  };
}

function usageEvent(workload: Workload, accountId: string, now: Date): UsageEventInput {
  return {
    eventId: randomUUID(),
    accountId,
    ...workload,
    usage: randomInt(1, MAX_MEMORY_GB + 1),
    timestamp: now.toISOString(),
  };
}
