/** The `meterline erase` command. */
import { counted } from '@meterline/catalog';
import type { RedisClient } from '@meterline/service/access';
import type { Command } from 'commander';
import { type CommandContext, formatCount, say } from '../../command.js';
import { withRedis, withShards } from '../../connections/servers.js';
import { CommandError, usageError } from '../../failure.js';
import { nameOf, type OutputFlags, withClickHouseFlags, withOutput, withRedisFlags } from '../../flags.js';
import { eraseAccount, findAccount, type Holdings } from '../../operations/erasure.js';
import { operate } from '../../operations/operation.js';
import type { ClickHouseFlags, RedisFlags } from '../../settings.js';

interface EraseFlags extends ClickHouseFlags, RedisFlags, OutputFlags {
  readonly account: string;
  readonly confirm?: string;
}

const RESUMABLE = 'Run the same command again to erase the rest.';

export function addErase(command: Command, context: CommandContext): void {
  command
    .description(
      'Erase an account after confirmation of its ID: first its API keys, alerts and saved views, so that nobody can read it any more, then its ' +
        'events, rejected events and rollups, month by month. ClickHouse deletes the old data files some minutes later.\n' +
        'After an interruption, run the same command again to erase the rest.\n' +
        'First stop the producers and let the queue drain, because events that arrive later are stored as usual. Not erased: ' +
        'backups, price books, which may contain the account ID, and jobs that were rejected whole, which belong to no account.',
    )
    .requiredOption('--account <account>', 'Account ID', nameOf)
    .option('--confirm <account>', 'Account ID again, to skip the confirmation')
    .action((flags: EraseFlags) => runErase(context, flags));
  withOutput(withRedisFlags(withClickHouseFlags(command)));
}

async function runErase(context: CommandContext, flags: EraseFlags): Promise<void> {
  const { account, confirm } = flags;
  if (confirm !== undefined && confirm !== account) throw usageError('--confirm must be the same account as --account');
  const redisUrl = await context.settings.redisUrl(flags);
  const withKeys = <T>(work: (redis: RedisClient) => Promise<T>) => withRedis(redisUrl, work, context);
  await withShards(context, flags, async (shards) => {
    const options = { shards, withRedis: withKeys, account };
    const found = await findAccount(options);
    say(context, `Account ${account} has ${describe(found.holdings)}.`);
    const question = 'Erase all of this permanently? Type the account ID:';
    const {
      rowsLeft = 0,
      apiKeys,
      alerts,
      views,
    } = await operate(context, flags, {
      confirm: confirm === undefined ? { question, reply: account } : undefined,
      label: (partitions) => `Erasing ${formatCount(partitions)} partitions`,
      work: (onProgress, signal) => eraseAccount(options, found, signal, onProgress),
      describe: ({ rowsLeft: _, ...erased }) => ({ json: { account, ...erased }, text: `Erased ${describe(erased)}.` }),
      resume: RESUMABLE,
    });
    if (found.partitions.every(({ rows }) => rows === 0) && apiKeys + alerts + views === 0) {
      throw new CommandError(`no data of account ${account} was found: check the ID, or the account is already erased`);
    }
    if (rowsLeft === 0) return;
    throw new CommandError(
      `${counted(rowsLeft, 'row')} of ${account} arrived during the erasure; stop its producers, let the queue drain, ` +
        'and run the same command again',
    );
  });
}

function describe({ usageEventRows, rejectedEventRows, apiKeys, alerts, views }: Holdings): string {
  return [
    counted(usageEventRows, 'stored event'),
    counted(rejectedEventRows, 'rejected event'),
    counted(apiKeys, 'API key'),
    counted(alerts, 'alert'),
    counted(views, 'saved view'),
  ].join(', ');
}
