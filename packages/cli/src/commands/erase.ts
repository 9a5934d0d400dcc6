import { counted } from '@meterline/catalog';
import type { RedisClient } from '@meterline/service/access';
import type { Command } from 'commander';
import { type CommandContext, formatCount, say } from '../command.js';
import { withRedis, withShards } from '../connections/servers.js';
import { CommandError, usageError } from '../failure.js';
import { nameOf, type OutputFlags, withClickHouseFlags, withOutput, withRedisFlags } from '../flags.js';
import { eraseAccount, findAccount, type Holdings } from '../operations/erasure.js';
import { operate } from '../operations/operation.js';
import type { ClickHouseFlags, RedisFlags } from '../settings.js';

interface EraseFlags extends ClickHouseFlags, RedisFlags, OutputFlags {
  readonly account: string;
  readonly confirm?: string;
}

const RESUMABLE = 'Run the same command again: it erases the rest.';

export function addErase(command: Command, context: CommandContext): void {
  command
    .description(
      'Erases an account, after a typed confirmation of its name: its API keys and alerts first, so that nobody reads in between, then ' +
        'its events, the rejected events that claim it and what was computed from them, month by month. Rows are written ' +
        `out of the files; ClickHouse removes the old files some minutes later.\n${RESUMABLE}\n` +
        'Events that arrive afterwards count as usual, so stop the producers first. Jobs in the queue cannot be searched ' +
        'cheaply: let the queue drain before. What stays: backups, price books, which may name the account, and jobs that ' +
        'were rejected whole, which belong to no account.',
    )
    .requiredOption('--account <account>', 'the account', nameOf)
    .option('--confirm <account>', 'the same account again, instead of typing it')
    .action((flags: EraseFlags) => runErase(context, flags));
  withOutput(withRedisFlags(withClickHouseFlags(command)));
}

async function runErase(context: CommandContext, flags: EraseFlags): Promise<void> {
  const { account, confirm } = flags;
  if (confirm !== undefined && confirm !== account) throw usageError('--confirm must repeat the name of --account');
  const redisUrl = await context.settings.redisUrl(flags);
  const withKeys = <T>(work: (redis: RedisClient) => Promise<T>) => withRedis(redisUrl, work, context);
  await withShards(context, flags, async (shards) => {
    const options = { shards, withRedis: withKeys, account };
    const found = await findAccount(options);
    say(context, `Account ${account} has ${describe(found.holdings)}.`);
    const question = 'Erase them for good? Type the name of the account:';
    const {
      rowsLeft = 0,
      apiKeys,
      alerts,
    } = await operate(context, flags, {
      confirm: confirm === undefined ? { question, answer: account } : undefined,
      label: (partitions) => `Erasing ${formatCount(partitions)} partitions`,
      work: (onProgress, signal) => eraseAccount(options, found, signal, onProgress),
      describe: ({ rowsLeft: _, ...erased }) => ({ json: { account, ...erased }, text: `Erased ${describe(erased)}.` }),
      resume: RESUMABLE,
    });
    if (found.partitions.every(({ rows }) => rows === 0) && apiKeys + alerts === 0) {
      throw new CommandError(
        `nothing of an account ${account} was found: it is erased already, or its name is another`,
      );
    }
    if (rowsLeft === 0) return;
    throw new CommandError(
      `rows of ${account} were stored meanwhile, ${formatCount(rowsLeft)} so far; stop its producers, let the queue drain, ` +
        'and run the same command again',
    );
  });
}

function describe({ usageEventRows, rejectedEventRows, apiKeys, alerts }: Holdings): string {
  return [
    counted(usageEventRows, 'stored event'),
    counted(rejectedEventRows, 'rejected event'),
    counted(apiKeys, 'API key'),
    counted(alerts, 'alert'),
  ].join(', ');
}
