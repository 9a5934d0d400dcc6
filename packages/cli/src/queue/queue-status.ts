import { readQueueDepth, waitingSeconds } from '@meterline/service/queue';
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

export async function readQueueStatus(queue: Queue, redis: Redis, now: Date): Promise<QueueStatus> {
  const depth = await readQueueDepth(queue, redis);
  const { waiting, active, delayed, failed, oldestWaitingSince } = depth;
  return {
    waiting,
    active,
    delayed,
    failed,
    completedKept: await queue.getCompletedCount(),
    paused: await queue.isPaused(),
    oldestWaitingSeconds: oldestWaitingSince === undefined ? null : Math.floor(waitingSeconds(depth, now.getTime())),
    workers: await queue.getWorkersCount(),
  };
}
