/** Queues of BullMQ: connections, schedules, and how much waits in the queue of events, for how long. */

import type { EpochMs } from '@meterline/catalog';
import type { Queue } from 'bullmq';
import type { RedisClient } from './access/index.js';

export { isConnectionError, openQueueConnection } from './queue-connection.js';
export { Scheduler } from './scheduler.js';

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
  /** When the job was taken that has been in work for longest, by its worker's clock; undefined when none is in work. */
  readonly oldestActiveSince: EpochMs | undefined;
}

/**
 * The numbers are read one after the other, so they need not fit together.
 * @param redis the connection of the queue
 */
export async function readQueueDepth(queue: Queue, redis: RedisClient): Promise<QueueDepth> {
  const [counts, oldestActiveSince, ...heads] = await Promise.all([
    queue.getJobCounts(...WAITING_STATES, 'active', 'delayed', 'failed', 'waiting-children'),
    firstJobSince(queue, redis, 'active', 'processedOn'),
    ...WAITING_STATES.map((state) => firstJobSince(queue, redis, state, 'timestamp')),
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
    oldestActiveSince,
  };
}

/** Reads the time of the job alone: its data may be megabytes, or not JSON. */
async function firstJobSince(
  queue: Queue,
  redis: RedisClient,
  state: (typeof WAITING_STATES)[number] | 'active',
  field: 'timestamp' | 'processedOn',
): Promise<EpochMs | undefined> {
  const [id] = await queue.getRanges([state], 0, 0, true);
  const timestamp = id === undefined ? null : await redis.hget(queue.toKey(id), field);
  // Producers may write anything there.
  return timestamp !== null && /^\d{1,15}$/.test(timestamp) ? Number(timestamp) : undefined;
}

/** 0 when none is meant; a clock that is ahead is no negative age. */
export function secondsSince(since: EpochMs | undefined, now: EpochMs): number {
  return since === undefined ? 0 : Math.max(0, now - since) / 1000;
}
