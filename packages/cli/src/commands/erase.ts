import { AccountDirectory, ApiKeyStore, REDIS_PREFIX } from '@meterline/access';
import {
  type AccountPartition,
  type AccountTable,
  DERIVED_TABLES,
  eraseAccountPartition,
  readAccountPartitions,
  removeDeletedRejections,
  type Warehouse,
} from '@meterline/warehouse';
import type { Command } from 'commander';
import type { Redis } from 'ioredis';
import { type CommandContext, formatCount, printResult, say } from '../command-context.js';
import { CommandError, usageError } from '../command-error.js';
import { requireAnswer } from '../confirmation.js';
import { withWarehouse } from '../connections/clickhouse.js';
import { withRedis } from '../connections/redis.js';
import { startProgress } from '../progress.js';
import type { ClickHouseFlags, RedisFlags } from '../settings/settings.js';
import { nameOf, withClickHouseFlags, withJson, withRedisFlags } from './flags.js';

interface EraseFlags extends ClickHouseFlags, RedisFlags {
  readonly account: string;
  readonly confirm?: string;
  readonly json?: boolean;
}

/** How much there is of an account, or how much of it was erased. */
interface Holdings {
  /** Rows: an event that was revised may have several. */
  readonly usageEventRows: number;
  readonly rejectedEventRows: number;
  readonly apiKeys: number;
}

const RESUMABLE = 'Run the same command again: it erases the rest.';

export function addEraseCommand(program: Command, context: CommandContext): void {
  const command = program
    .command('erase')
    .description(
      'Erases an account, after a typed confirmation of its name: its API keys first, so that nobody reads in between, then ' +
        'its events, the refused events that claim it and what was computed from them, month by month. Rows are written ' +
        `out of the files; ClickHouse removes the old files some minutes later.\n${RESUMABLE}\n` +
        'Events that arrive afterwards count as ever, so stop the producers first. Jobs in the queue cannot be searched ' +
        'cheaply: let the queue drain before. Left alone are backups, price books, which may name the account, and jobs that ' +
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
  await withWarehouse(await context.settings.clickhouse(flags), async (warehouse) => {
    const partitions = await readAccountPartitions(warehouse, account);
    const apiKeys = await withRedis(redisUrl, (redis) => countKeys(redis, account));
    say(context, `Account ${account} has ${describe(holdings(partitions, apiKeys))}.`);
    if (confirm === undefined) {
      await requireAnswer(context, 'Erase them for good? Type the name of the account:', account);
    }
    const signal = context.interruption();
    const erasedKeys = await withRedis(redisUrl, (redis) => eraseKeys(redis, account));
    const erased = await erasePartitions(context, warehouse, partitions, account, signal);
    // What was computed from events that were not erased yet may have been stored after their months were done.
    const derivedSince = await readAccountPartitions(warehouse, account, DERIVED_TABLES);
    await erasePartitions(context, warehouse, derivedSince, account, signal);
    if (!signal.aborted) await removeDeletedRejections(warehouse);
    const result = holdings(erased, erasedKeys);
    printResult(context, flags.json, { account, ...result }, `Erased ${describe(result)}.`);
    if (signal.aborted) throw new CommandError(`interrupted. ${RESUMABLE}`);
    await requireNothingLeft(warehouse, account);
  });
}

/** A producer that goes on, or a worker with rows in its hands, may have stored some behind the erasure. */
async function requireNothingLeft(warehouse: Warehouse, account: string): Promise<void> {
  const left = (await readAccountPartitions(warehouse, account)).reduce((sum, { rows }) => sum + rows, 0);
  if (left === 0) return;
  throw new CommandError(
    `rows of ${account} were stored meanwhile, ${formatCount(left)} so far; stop its producers, let the queue drain, ` +
      'and run the same command again',
  );
}

function holdings(partitions: readonly AccountPartition[], apiKeys: number): Holdings {
  const rowsOf = (wanted: AccountTable) =>
    partitions.reduce((sum, { table, rows }) => (table === wanted ? sum + rows : sum), 0);
  return { usageEventRows: rowsOf('usage_events'), rejectedEventRows: rowsOf('rejected_events'), apiKeys };
}

function describe({ usageEventRows, rejectedEventRows, apiKeys }: Holdings): string {
  const count = (things: number, name: string) => `${formatCount(things)} ${name}${things === 1 ? '' : 's'}`;
  return [
    count(usageEventRows, 'stored event'),
    count(rejectedEventRows, 'refused event'),
    count(apiKeys, 'API key'),
  ].join(', ');
}

async function countKeys(redis: Redis, account: string): Promise<number> {
  const keys = await keyStore(redis).list();
  return keys.filter((key) => key.account === account).length;
}

async function eraseKeys(redis: Redis, account: string): Promise<number> {
  const erased = await keyStore(redis).eraseKeysOf(account);
  await new AccountDirectory(redis, REDIS_PREFIX).forget(account);
  return erased;
}

function keyStore(redis: Redis): ApiKeyStore {
  return new ApiKeyStore(redis, new AccountDirectory(redis, REDIS_PREFIX), REDIS_PREFIX);
}

/** One after the other, because each writes its month anew. @returns those that are done; fewer when interrupted */
async function erasePartitions(
  context: CommandContext,
  warehouse: Warehouse,
  partitions: readonly AccountPartition[],
  account: string,
  signal: AbortSignal,
): Promise<AccountPartition[]> {
  if (partitions.length === 0) return [];
  const erased: AccountPartition[] = [];
  const progress = startProgress(context, `Erasing ${formatCount(partitions.length)} partitions`, partitions.length);
  try {
    for (const partition of partitions) {
      if (signal.aborted) break;
      await eraseAccountPartition(warehouse, partition, account);
      erased.push(partition);
      progress.update(erased.length);
    }
  } finally {
    progress.stop();
  }
  return erased;
}
