/** The schema in ClickHouse, and the queue in Redis. */
import { QUEUE_NAME } from '@meterline/catalog';
import type { RedisClient } from '@meterline/service/access';
import { readQueueDepth, secondsSince } from '@meterline/service/queue';
import { MigrationError, migrate } from '@meterline/warehouse';
import { Queue } from 'bullmq';
import type { Command } from 'commander';
import { type CommandContext, formatCount } from '../command.js';
import { clickHouseFailure, reachClickHouse, withRedis } from '../connections/servers.js';
import { CommandError } from '../failure.js';
import { type OutputFlags, withClickHouseFlags, withOutput, withRedisFlags } from '../flags.js';
import { printResult } from '../output/result.js';
import { fieldLines } from '../output/table.js';
import type { ClickHouseFlags, RedisFlags } from '../settings.js';

type MigrateFlags = ClickHouseFlags & OutputFlags;

export function addMigrate(command: Command, context: CommandContext): void {
  command
    .description('Creates the database if there is none and runs the migrations that it lacks. Safe to run again.')
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
    .summary('how many jobs wait, for how long, and who takes them')
    .description(
      'Shows how many jobs wait, are in work, delayed, failed, parents of a flow that wait for their children, and done but ' +
        'still kept; how long the next in line has been waiting, and the oldest has been in work; whether the queue is paused; and how many ingest workers are connected. A job holds up to 5,000 events.',
    )
    .action((flags: StatusFlags) => showStatus(context, flags));
  withOutput(withRedisFlags(status));
}

async function showStatus(context: CommandContext, flags: StatusFlags): Promise<void> {
  const prefix = context.settings.queuePrefix(flags);
  const read = async (redis: RedisClient) => {
    const queue = new Queue(QUEUE_NAME, { connection: redis, prefix });
    // The errors of the queue also reject the command that was under way.
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

/** How the queue stands at this moment; the numbers are read one after the other. */
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
    /** Workers keep the last few only. */
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
