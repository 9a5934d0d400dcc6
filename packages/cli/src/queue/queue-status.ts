import type { Queue } from 'bullmq';
import type { Redis } from 'ioredis';

/** How the queue stands at this moment; the numbers are read one after the other. */
export interface QueueStatus {
  /** Jobs that no worker has taken yet, with a priority or not. */
  readonly waiting: number;
  /** Jobs in work. */
  readonly active: number;
  readonly delayed: number;
  readonly failed: number;
  /** Jobs that are done and still readable; workers keep the last few only. */
  readonly completedKept: number;
  readonly paused: boolean;
  /** How long the job at the head of the line has been in the queue, in seconds; null when none waits. */
  readonly oldestWaitingSeconds: number | null;
  /** Connections of ingest workers that take jobs. */
  readonly workers: number;
}

/** Where jobs wait, the queue paused or not; those with a priority have a line of their own. */
const WAITING = ['waiting', 'prioritized'] as const;

export async function readQueueStatus(queue: Queue, redis: Redis, now: Date): Promise<QueueStatus> {
  const counts = await queue.getJobCounts(...WAITING, 'active', 'delayed', 'failed', 'completed');
  const heads = await Promise.all(WAITING.map((state) => headTimestamp(queue, redis, state)));
  const oldest = Math.min(...heads.filter((timestamp) => timestamp !== undefined));
  return {
    waiting: WAITING.reduce((sum, state) => sum + (counts[state] ?? 0), 0),
    active: counts['active'] ?? 0,
    delayed: counts['delayed'] ?? 0,
    failed: counts['failed'] ?? 0,
    completedKept: counts['completed'] ?? 0,
    paused: await queue.isPaused(),
    // A clock that is ahead is no negative age.
    oldestWaitingSeconds: oldest === Infinity ? null : Math.max(0, Math.floor((now.getTime() - oldest) / 1000)),
    workers: await queue.getWorkersCount(),
  };
}

/** When the next job in this line was sent. Not read as a job: its data may be large, or no JSON at all. */
async function headTimestamp(queue: Queue, redis: Redis, state: (typeof WAITING)[number]): Promise<number | undefined> {
  const [id] = await queue.getRanges([state], 0, 0, true);
  const timestamp = id === undefined ? null : await redis.hget(queue.toKey(id), 'timestamp');
  // Producers may write anything there.
  return timestamp !== null && /^\d{1,15}$/.test(timestamp) ? Number(timestamp) : undefined;
}
