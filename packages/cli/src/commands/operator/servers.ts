/** The `meterline migrate` and `meterline queue` commands. */
import { QUEUE_NAME } from '@meterline/catalog';
import type { RedisClient } from '@meterline/service/access';
import { readQueueDepth, secondsSince } from '@meterline/service/queue';
import { MigrationError, migrate } from '@meterline/warehouse';
import { Queue } from 'bullmq';
import type { Command } from 'commander';
import { type CommandContext, formatCount } from '../../command.js';
import { clickHouseFailure, reachClickHouse, withRedis } from '../../connections/servers.js';
import { CommandError } from '../../failure.js';
import { type OutputFlags, withClickHouseFlags, withOutput, withRedisFlags } from '../../flags.js';
import { printResult } from '../../output/result.js';
import { fieldLines } from '../../output/table.js';
import type { ClickHouseFlags, RedisFlags } from '../../settings.js';

type MigrateFlags = ClickHouseFlags & OutputFlags;

export function addMigrate(command: Command, context: CommandContext): void {
  command
    .description(
      'Create the ClickHouse database if it does not exist, and apply missing migrations. Safe to run again.',
    )
    .action((flags: MigrateFlags) => runMigrate(context, flags));
  withOutput(withClickHouseFlags(command));
}

async function runMigrate(context: CommandContext, flags: MigrateFlags): Promise<void> {
  const settings = await context.settings.clickhouse(flags);
  const options = await reachClickHouse(settings);
  const { database } = settings;
  try {
    const applied = await migrate(options);
    const text =
      applied.length === 0
        ? `Database ${database} is up to date.`
        : `Applied to database ${database}:\n${applied.map((name) => `  ${name}`).join('\n')}`;
    printResult(context, flags, { database, applied }, text);
  } catch (error) {
    if (error instanceof MigrationError) throw new CommandError(error.message, undefined, { cause: error });
    throw clickHouseFailure(settings, error);
  }
}

type StatusFlags = RedisFlags & OutputFlags;

export function addQueue(queue: Command, context: CommandContext): void {
  const status = queue
    .command('status')
    .summary('Show queue depth, wait times and active workers')
    .description(
      'Show the number of jobs in each state, the wait time of the next job, the run time of the oldest active job, whether the queue ' +
        'is paused, and the number of connected ingest workers. A job has up to 5,000 events.',
    )
    .action((flags: StatusFlags) => showStatus(context, flags));
  withOutput(withRedisFlags(status));
}

async function showStatus(context: CommandContext, flags: StatusFlags): Promise<void> {
  const prefix = context.settings.queuePrefix(flags);
  const read = async (redis: RedisClient) => {
    const queue = new Queue(QUEUE_NAME, { connection: redis, prefix });
    // Ignore the queue's error events. The same errors also reject the pending command, which reports them.
    queue.on('error', () => undefined);
    try {
      return await readQueueStatus(queue, redis, context.now());
    } finally {
      await queue.close();
    }
  };
  const status = await withRedis(await context.settings.redisUrl(flags), read, context);
  printResult(context, flags, status, describe(status));
}

/** Reads the status of the queue. The numbers may not match exactly, because Redis returns them one after the other. */
async function readQueueStatus(queue: Queue, redis: RedisClient, now: Date) {
  const depth = await readQueueDepth(queue, redis);
  const { waiting, active, delayed, failed, waitingChildren, oldestWaitingSince, oldestActiveSince } = depth;
  const age = (since: number | undefined) =>
    since === undefined ? null : Math.floor(secondsSince(since, now.getTime()));
  return {
    waiting,
    active,
    delayed,
    failed,
    flowParents: waitingChildren,
    /** Workers keep only the last few completed jobs, so this is not a total. */
    completedKept: await queue.getCompletedCount(),
    paused: await queue.isPaused(),
    oldestWaitingSeconds: age(oldestWaitingSince),
    oldestActiveSeconds: age(oldestActiveSince),
    workers: await queue.getWorkersCount(),
  };
}

function describe(status: Awaited<ReturnType<typeof readQueueStatus>>): string {
  const age = (seconds: number | null) => (seconds === null ? '-' : `${formatCount(seconds)} s`);
  const lines = fieldLines([
    ['waiting', formatCount(status.waiting)],
    ['oldest waiting', age(status.oldestWaitingSeconds)],
    ['active', formatCount(status.active)],
    ['oldest active', age(status.oldestActiveSeconds)],
    ['delayed', formatCount(status.delayed)],
    ['failed', formatCount(status.failed)],
    ['flow parents', formatCount(status.flowParents)],
    ['completed kept', formatCount(status.completedKept)],
    ['paused', status.paused ? 'yes' : 'no'],
    ['workers', formatCount(status.workers)],
  ]);
  return lines.join('\n');
}
