/** Adds jobs to the queue as runtimes do, and measures how fast a worker processes them. */
import { setTimeout as delay } from 'node:timers/promises';
import type { UsageEventInput } from '@meterline/catalog';
import type { Queue } from 'bullmq';

const BULK = 500;
const POLL_MS = 10;

let serial = 0;

/** An event of one of a hundred accounts within the last half hour, with a unique id. */
export function liveEvent(now = Date.now()): UsageEventInput {
  serial += 1;
  const timestamp = now - ((serial * 37) % 1_800_000);
  return {
    eventId: uuidV7(timestamp),
    accountId: `account-${String(serial % 5 < 2 ? 0 : serial % 100).padStart(2, '0')}`,
    workspace: `workspace-${serial % 7}`,
    resourceType: 'agent',
    resourceName: `agent-${serial % 500}`,
    billingDimension: 'agent_compute_runtime_gbs',
    usage: ((serial * 1.37) % 5000).toFixed(4),
    timestamp: new Date(timestamp).toISOString(),
  };
}

export function liveEvents(count: number): UsageEventInput[] {
  return Array.from({ length: count }, () => liveEvent());
}

function uuidV7(milliseconds: number): string {
  const time = milliseconds.toString(16).padStart(12, '0');
  const random = crypto.randomUUID();
  return `${time.slice(0, 8)}-${time.slice(8)}-7${random.slice(15)}`;
}

export function jobOf(events: number): { name: string; data: unknown } {
  return { name: 'usage', data: events === 1 ? liveEvent() : { events: liveEvents(events) } };
}

/**
 * Measures the events per second of the worker on this queue. The jobs are added while the queue is paused; the time runs
 * from its resumption until the last job is acknowledged.
 * @param timed does the part that is measured
 */
export async function drainRate(
  queue: Queue,
  jobs: number,
  eventsPerJob: number,
  timed: (work: () => Promise<void>) => Promise<void> = (work) => work(),
): Promise<number> {
  await queue.pause();
  const bulk = Math.max(1, Math.floor((BULK * 20) / (20 + eventsPerJob)));
  for (let done = 0; done < jobs; done += bulk) {
    await queue.addBulk(Array.from({ length: Math.min(bulk, jobs - done) }, () => jobOf(eventsPerJob)));
  }
  const started = performance.now();
  await timed(async () => {
    await queue.resume();
    while ((await queue.getJobCountByTypes('waiting', 'active')) > 0) await delay(POLL_MS);
  });
  return (1000 * jobs * eventsPerJob) / (performance.now() - started);
}
