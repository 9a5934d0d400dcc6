import type { RedisClient } from '@meterline/access';
import { counted } from '@meterline/catalog';
import { eraseAccount, findAccount, type Holdings } from '@meterline/operations/erasure';
import type { Command } from 'commander';
import { type CommandContext, CommandError, formatCount, printResult, say, usageError } from '../command.js';
import { withShards } from '../connections/clickhouse.js';
import { withRedis } from '../connections/redis.js';
import { type JsonFlag, nameOf, withClickHouseFlags, withJson, withRedisFlags } from '../flags.js';
import { requireAnswer } from '../input.js';
import { withProgress } from '../output/progress.js';
import type { ClickHouseFlags, RedisFlags } from '../settings/settings.js';

interface EraseFlags extends ClickHouseFlags, RedisFlags, JsonFlag {
  readonly account: string;
  readonly confirm?: string;
}

const RESUMABLE = 'Run the same command again: it erases the rest.';

export function addCommand(program: Command, context: CommandContext): void {
  const command = program
    .command('erase')
    .description(
      'Erases an account, after a typed confirmation of its name: its API keys first, so that nobody reads in between, then ' +
        'its events, the refused events that claim it and what was computed from them, month by month. Rows are written ' +
        `out of the files; ClickHouse removes the old files some minutes later.\n${RESUMABLE}\n` +
        'Events that arrive afterwards count as usual, so stop the producers first. Jobs in the queue cannot be searched ' +
        'cheaply: let the queue drain before. What stays: backups, price books, which may name the account, and jobs that ' +
        'were refused whole, which belong to no account.',
    )
    .requiredOption('--account <account>', 'the account', nameOf)
    .option('--confirm <account>', 'the same account again, instead of typing it')
    .action((flags: EraseFlags) => runErase(context, flags));
  withJson(withRedisFlags(withClickHouseFlags(command)));
}

async function runErase(context: CommandContext, flags: EraseFlags): Promise<void> {
  const { account, confirm } = flags;
  if (confirm !== undefined && confirm !== account) throw usageError('--confirm must repeat the name of --account');
  const redisUrl = await context.settings.redisUrl(flags);
  await withShards(await context.settings.clickhouse(flags), async (shards) => {
    const options = {
      shards,
      withRedis: <T>(work: (redis: RedisClient) => Promise<T>) => withRedis(redisUrl, work),
      account,
    };
    const found = await findAccount(options);
    say(context, `Account ${account} has ${describe(found.holdings)}.`);
    if (confirm === undefined) {
      await requireAnswer(context, 'Erase them for good? Type the name of the account:', account);
    }
    const signal = context.interruption();
    const { rowsLeft, ...erased } = await withProgress(
      context,
      (partitions) => `Erasing ${formatCount(partitions)} partitions`,
      (onProgress) => eraseAccount(options, found, signal, onProgress),
    );
    printResult(context, flags.json, { account, ...erased }, `Erased ${describe(erased)}.`);
    if (rowsLeft === undefined) throw new CommandError(`interrupted. ${RESUMABLE}`);
    if (rowsLeft === 0) return;
    throw new CommandError(
      `rows of ${account} were stored meanwhile, ${formatCount(rowsLeft)} so far; stop its producers, let the queue drain, ` +
        'and run the same command again',
    );
  });
}

function describe({ usageEventRows, rejectedEventRows, apiKeys }: Holdings): string {
  return [
    counted(usageEventRows, 'stored event'),
    counted(rejectedEventRows, 'refused event'),
    counted(apiKeys, 'API key'),
  ].join(', ');
}
