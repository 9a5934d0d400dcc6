import type { RedisClient } from '@meterline/access';
import { QUEUE_NAME, queuePrefixOf } from '@meterline/catalog';
import { findShards, readQueueDepth, waitingSeconds } from '@meterline/service/queue';
import { Queue } from 'bullmq';
import type { Command } from 'commander';
import { type CommandContext, formatCount, printResult } from '../command.js';
import { withRedis } from '../connections/redis.js';
import { type JsonFlag, withJson, withRedisFlags } from '../flags.js';
import type { RedisFlags } from '../settings/settings.js';

type StatusFlags = RedisFlags & JsonFlag;

export function addCommand(program: Command, context: CommandContext): void {
  const queue = program.command('queue').description('the queue between runtimes and the ingest workers');
  const status = queue
    .command('status')
    .summary('how many jobs wait, for how long, and who takes them')
    .description(
      'Shows how many jobs wait, are in work, delayed, failed, parents of a flow that wait for their children, and done but ' +
        'still kept; how long the next in line has been waiting; whether the queue is paused; and how many ingest workers are connected. A job holds up to 5,000 events.',
    )
    .action((flags: StatusFlags) => showStatus(context, flags));
  withJson(withRedisFlags(status));
}

async function showStatus(context: CommandContext, flags: StatusFlags): Promise<void> {
  const prefix = context.settings.queuePrefix(flags);
  const status = await withRedis(await context.settings.redisUrl(flags), async (redis) => {
    const shards = await findShards(redis, prefix);
    const statuses = await Promise.all(
      (shards.length > 0 ? shards : [0]).map((shard) =>
        withShard(redis, queuePrefixOf(prefix, shard, redis.isCluster), (queue) =>
          readQueueStatus(queue, redis, context.now()),
        ),
      ),
    );
    return together(statuses);
  });
  printResult(context, flags.json, status, describe(status));
}

async function withShard<T>(redis: RedisClient, prefix: string, work: (queue: Queue) => Promise<T>): Promise<T> {
  const queue = new Queue(QUEUE_NAME, { connection: redis, prefix });
  // The same errors reject the command that was under way.
  queue.on('error', () => undefined);
  try {
    return await work(queue);
  } finally {
    await queue.close();
  }
}

/** All queues as one. Each worker has a connection to each of them. */
function together(statuses: readonly QueueStatus[]): QueueStatus & { readonly queues: number } {
  const sum = (field: 'waiting' | 'active' | 'delayed' | 'failed' | 'flowParents' | 'completedKept') =>
    statuses.reduce((total, status) => total + status[field], 0);
  const ages = statuses.flatMap(({ oldestWaitingSeconds }) => oldestWaitingSeconds ?? []);
  return {
    queues: statuses.length,
    waiting: sum('waiting'),
    active: sum('active'),
    delayed: sum('delayed'),
    failed: sum('failed'),
    flowParents: sum('flowParents'),
    completedKept: sum('completedKept'),
    paused: statuses.some(({ paused }) => paused),
    oldestWaitingSeconds: ages.length > 0 ? Math.max(...ages) : null,
    workers: Math.min(...statuses.map(({ workers }) => workers)),
  };
}

/** How the queue stands at this moment; the numbers are read one after the other. */
export interface QueueStatus {
  /** Jobs that no worker has taken yet, with a priority or not. */
  readonly waiting: number;
  /** Jobs in work. */
  readonly active: number;
  readonly delayed: number;
  readonly failed: number;
  /** Parents of a BullMQ flow that wait for their children; no worker takes them before. */
  readonly flowParents: number;
  /** Jobs that are done and still readable; workers keep the last few only. */
  readonly completedKept: number;
  readonly paused: boolean;
  /** How long the job at the head of the line has been in the queue, in seconds; null when none waits. */
  readonly oldestWaitingSeconds: number | null;
  /** Connections of ingest workers that take jobs; of several queues, those to the one that has the fewest. */
  readonly workers: number;
}

export async function readQueueStatus(queue: Queue, redis: RedisClient, now: Date): Promise<QueueStatus> {
  const depth = await readQueueDepth(queue, redis);
  const { waiting, active, delayed, failed, waitingChildren, oldestWaitingSince } = depth;
  return {
    waiting,
    active,
    delayed,
    failed,
    flowParents: waitingChildren,
    completedKept: await queue.getCompletedCount(),
    paused: await queue.isPaused(),
    oldestWaitingSeconds: oldestWaitingSince === undefined ? null : Math.floor(waitingSeconds(depth, now.getTime())),
    workers: await queue.getWorkersCount(),
  };
}

function describe(status: QueueStatus & { readonly queues: number }): string {
  const { oldestWaitingSeconds: oldest } = status;
  return [
    ...(status.queues > 1 ? [`queues          ${formatCount(status.queues)}`] : []),
    `waiting         ${formatCount(status.waiting)}`,
    `oldest waiting  ${oldest === null ? '-' : `${formatCount(oldest)} s`}`,
    `active          ${formatCount(status.active)}`,
    `delayed         ${formatCount(status.delayed)}`,
    `failed          ${formatCount(status.failed)}`,
    `flow parents    ${formatCount(status.flowParents)}`,
    `completed kept  ${formatCount(status.completedKept)}`,
    `paused          ${status.paused ? 'yes' : 'no'}`,
    `workers         ${formatCount(status.workers)}`,
  ].join('\n');
}
