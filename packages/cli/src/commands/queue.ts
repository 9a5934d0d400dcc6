import type { Command } from 'commander';
import { type CommandContext, formatCount, printResult } from '../command-context.js';
import { withRedis } from '../connections/redis.js';
import type { QueueStatus } from '../queue/queue-status.js';
import { UsageQueue } from '../queue/usage-queue.js';
import type { RedisFlags } from '../settings/settings.js';
import { withJson, withRedisFlags } from './flags.js';

interface StatusFlags extends RedisFlags {
  readonly json?: boolean;
}

export function addQueueCommands(program: Command, context: CommandContext): void {
  const queue = program.command('queue').description('the queue between runtimes and the ingest workers');
  const status = queue
    .command('status')
    .summary('how many jobs wait, for how long, and who takes them')
    .description(
      'Shows how many jobs wait, are in work, delayed, failed, and done but still kept; how long the next in line has been ' +
        'waiting; whether the queue is paused; and how many ingest workers are connected. A job holds up to 5,000 events.',
    )
    .action((flags: StatusFlags) => showStatus(context, flags));
  withJson(withRedisFlags(status));
}

async function showStatus(context: CommandContext, flags: StatusFlags): Promise<void> {
  const status = await withRedis(await context.settings.redisUrl(flags), async (redis) => {
    const queue = new UsageQueue(redis, context.settings.queuePrefix(flags));
    try {
      return await queue.status(context.now());
    } finally {
      await queue.close();
    }
  });
  printResult(context, flags.json, status, describe(status));
}

function describe(status: QueueStatus): string {
  const { oldestWaitingSeconds: oldest } = status;
  return [
    `waiting         ${formatCount(status.waiting)}`,
    `oldest waiting  ${oldest === null ? '-' : `${formatCount(oldest)} s`}`,
    `active          ${formatCount(status.active)}`,
    `delayed         ${formatCount(status.delayed)}`,
    `failed          ${formatCount(status.failed)}`,
    `completed kept  ${formatCount(status.completedKept)}`,
    `paused          ${status.paused ? 'yes' : 'no'}`,
    `workers         ${formatCount(status.workers)}`,
  ].join('\n');
}
