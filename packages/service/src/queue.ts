/** Which queues there are, how much waits in them, and for how long. */
import type { RedisClient } from '@meterline/access';
import { type EpochMs, MAX_QUEUE_SHARDS, QUEUE_NAME, queuePrefixOf } from '@meterline/catalog';
import type { Queue } from 'bullmq';

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
export async function readQueueDepth(queue: Queue, redis: RedisClient): Promise<QueueDepth> {
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
  redis: RedisClient,
  state: (typeof WAITING_STATES)[number],
): Promise<EpochMs | undefined> {
  const [id] = await queue.getRanges([state], 0, 0, true);
  const timestamp = id === undefined ? null : await redis.hget(queue.toKey(id), 'timestamp');
  // Producers may write anything there.
  return timestamp !== null && /^\d{1,15}$/.test(timestamp) ? Number(timestamp) : undefined;
}

/** Of several queues together. */
export function sumOfDepths(depths: readonly QueueDepth[]): QueueDepth {
  const sum = (field: Exclude<keyof QueueDepth, 'oldestWaitingSince'>) =>
    depths.reduce((total, depth) => total + depth[field], 0);
  const since = depths.flatMap(({ oldestWaitingSince }) => oldestWaitingSince ?? []);
  return {
    waiting: sum('waiting'),
    active: sum('active'),
    delayed: sum('delayed'),
    failed: sum('failed'),
    waitingChildren: sum('waitingChildren'),
    oldestWaitingSince: since.length > 0 ? Math.min(...since) : undefined,
  };
}

/**
 * The queues to which a job was ever added, by their number, whatever QUEUE_SHARDS says now. One whose server does not answer is
 * missing.
 */
export async function findShards(redis: RedisClient, prefix: string): Promise<number[]> {
  const shards = [...Array(MAX_QUEUE_SHARDS).keys()];
  const found = await Promise.all(
    shards.map(async (shard) => {
      // BullMQ counts the jobs of a queue in it, and never removes it.
      const counter = `${queuePrefixOf(prefix, shard, redis.isCluster)}:${QUEUE_NAME}:id`;
      const isThere = await redis.exists(counter).catch(() => 0);
      return isThere === 1 ? [shard] : [];
    }),
  );
  return found.flat();
}

/** 0 when none waits; a clock that is ahead is no negative age. */
export function waitingSeconds({ oldestWaitingSince }: QueueDepth, now: EpochMs): number {
  return oldestWaitingSince === undefined ? 0 : Math.max(0, now - oldestWaitingSince) / 1000;
}
