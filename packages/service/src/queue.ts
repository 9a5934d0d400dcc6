/** How much waits in the queue, and for how long. */
import type { EpochMs } from '@meterline/catalog';
import type { Queue } from 'bullmq';
import type { Redis } from 'ioredis';

/** The states of jobs that wait, whether or not the queue is paused. Jobs with a priority have a state of their own. */
const WAITING_STATES = ['waiting', 'prioritized'] as const;

export interface QueueDepth {
  /** Those with a priority included. */
  readonly waiting: number;
  readonly active: number;
  readonly delayed: number;
  readonly failed: number;
  /** Parents of a BullMQ flow that wait for jobs of theirs, perhaps in other queues. No worker takes them before. */
  readonly waitingChildren: number;
  /** When the next job was added, by its producer's clock; undefined when none waits. */
  readonly oldestWaitingSince: EpochMs | undefined;
}

/**
 * The numbers are read one after the other, so they need not fit together.
 * @param redis the connection of the queue
 */
export async function readQueueDepth(queue: Queue, redis: Redis): Promise<QueueDepth> {
  const [counts, ...heads] = await Promise.all([
    queue.getJobCounts(...WAITING_STATES, 'active', 'delayed', 'failed', 'waiting-children'),
    ...WAITING_STATES.map((state) => nextJobSince(queue, redis, state)),
  ]);
  const since = heads.filter((timestamp) => timestamp !== undefined);
  const {
    waiting = 0,
    prioritized = 0,
    active = 0,
    delayed = 0,
    failed = 0,
    'waiting-children': waitingChildren = 0,
  } = counts;
  return {
    waiting: waiting + prioritized,
    active,
    delayed,
    failed,
    waitingChildren,
    oldestWaitingSince: since.length > 0 ? Math.min(...since) : undefined,
  };
}

/** Reads the time of the job alone: its data may be megabytes, or not JSON. */
async function nextJobSince(
  queue: Queue,
  redis: Redis,
  state: (typeof WAITING_STATES)[number],
): Promise<EpochMs | undefined> {
  const [id] = await queue.getRanges([state], 0, 0, true);
  const timestamp = id === undefined ? null : await redis.hget(queue.toKey(id), 'timestamp');
  // Producers may write anything there.
  return timestamp !== null && /^\d{1,15}$/.test(timestamp) ? Number(timestamp) : undefined;
}

/** 0 when none waits; a clock that is ahead is no negative age. */
export function waitingSeconds({ oldestWaitingSince }: QueueDepth, now: EpochMs): number {
  return oldestWaitingSince === undefined ? 0 : Math.max(0, now - oldestWaitingSince) / 1000;
}
