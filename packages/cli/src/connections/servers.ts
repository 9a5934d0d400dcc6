/** Connections to ClickHouse and Redis. Each is tried once: a command in a terminal ends with a clear message rather than wait. */
import { QUEUE_NAME } from '@meterline/catalog';
import {
  createRedisClient,
  moreInformative,
  NotReplicated,
  type RedisClient,
  readRedisStatus,
  redisFailureKind,
  replicated,
} from '@meterline/service/access';
import { connectionHint } from '@meterline/service/connection-hint';
import { parseRedisUrl } from '@meterline/service/redis-address';
import {
  ClusterError,
  checkServers,
  clickHouseFailureKind,
  openShards,
  type Shards,
  type WarehouseOptions,
} from '@meterline/warehouse';
import { Queue } from 'bullmq';
import { type CommandContext, say } from '../command.js';
import { CommandError, systemErrorCode } from '../failure.js';
import {
  type ClickHouseFlags,
  type ClickHouseSettings,
  displayUrl,
  type RedisFlags,
  type Setting,
} from '../settings.js';
import { requireWritten } from './redis-persistence.js';

/** Until the server has answered, not only until the connection stands. */
const CONNECT_TIMEOUT_MS = 5_000;
/** A migration may rewrite data. */
const STATEMENT_TIMEOUT_MS = 600_000;
/** A Redis that stays silent for this long while it owes a response counts as gone. */
const SILENCE_TIMEOUT_MS = 30_000;
/** Until replicas and the disk have a job. */
const RESPONSE_TIMEOUT_MS = 10_000;

/**
 * What a warehouse needs to know, after a check that ClickHouse answers and lets us in.
 * @throws CommandError when it does not
 */
export async function reachClickHouse(settings: ClickHouseSettings): Promise<WarehouseOptions> {
  const options = { ...settings, url: settings.url.value, application: 'meterline-cli' };
  try {
    await checkServers({ ...options, requestTimeoutMs: CONNECT_TIMEOUT_MS });
  } catch (error) {
    throw clickHouseFailure(settings, error);
  }
  return { ...options, requestTimeoutMs: STATEMENT_TIMEOUT_MS };
}

/**
 * Runs `work` with connections to the shards of Meterline's database, one if it is on one server, and closes them.
 * @throws CommandError when ClickHouse cannot be reached, goes away or refuses a statement, or `work` fails
 */
export async function withShards<T>(
  context: CommandContext,
  flags: ClickHouseFlags,
  work: (shards: Shards) => Promise<T>,
): Promise<T> {
  const settings = await context.settings.clickhouse(flags);
  let shards: Shards | undefined;
  try {
    shards = await openShards(await reachClickHouse(settings));
    return await work(shards);
  } catch (error) {
    if (error instanceof ClusterError) throw new CommandError(error.message, undefined, { cause: error });
    if (error instanceof CommandError || clickHouseFailureKind(error) === 'defect') throw error;
    throw clickHouseFailure(settings, error);
  } finally {
    await shards?.close();
  }
}

/** The failure of a statement or a connection, as one line that names the server. */
export function clickHouseFailure({ url, user }: ClickHouseSettings, cause: unknown): CommandError {
  const target = `ClickHouse at ${displayUrl(url.value)} (from ${url.source})`;
  const message = cause instanceof Error ? cause.message.split('\n', 1)[0] : String(cause);
  const isSlow = message === `no response within ${STATEMENT_TIMEOUT_MS} ms`;
  const text = {
    refused: `${target} refuses (as user ${user}): ${message}`,
    unfit: `${target} cannot be used (as user ${user}): ${message}`,
    foreign: `${target} does not answer as ClickHouse does${message && `: ${message}`}`,
    defect: `${target} could not be used because of a bug in Meterline: ${message}`,
    away: isSlow
      ? `${target} gave ${message}, and may still be at work; wait for it (system.mutations), and run the same command again`
      : `cannot reach ${target}: ${systemErrorCode(cause)}; ${connectionHint(cause) ?? 'is it running?'}`,
  }[clickHouseFailureKind(cause)];
  return new CommandError(text, undefined, { cause });
}

/**
 * Runs `work` with a connection to Redis and closes it.
 * @param warnings where a Redis that may evict is warned of, for work that adds nothing; undefined: such a Redis is refused
 * @throws CommandError when Redis cannot be reached or relied on, goes away or refuses a command
 */
export async function withRedis<T>(
  address: Setting,
  work: (redis: RedisClient) => Promise<T>,
  warnings?: Pick<CommandContext, 'stderr'>,
): Promise<T> {
  const redis = createRedisClient(address.value, {
    lazyConnect: true,
    socketTimeout: SILENCE_TIMEOUT_MS,
    maxRetriesPerRequest: null,
    enableOfflineQueue: false,
    retryStrategy: () => null,
  });
  // This event has the reason. The error of the command itself says only that the connection is closed.
  let reason: unknown;
  redis.on('error', (error: Error) => {
    reason = moreInformative(reason, error);
  });
  const connectDeadline = setTimeout(() => {
    reason ??= new Error(`no response within ${CONNECT_TIMEOUT_MS / 1000} s`);
    redis.disconnect();
  }, CONNECT_TIMEOUT_MS);
  try {
    await redis.connect();
    clearTimeout(connectDeadline);
    // Connected even if the database that the address names could not be selected: the first one would be used.
    if (reason !== undefined) throw reason;
    const { problem, isUsable } = await readRedisStatus(redis);
    if (problem !== undefined) {
      const message = `Redis at ${displayUrl(address.value)} (from ${address.source}) ${problem}`;
      if (!warnings || !isUsable) throw new CommandError(message);
      say(warnings, `meterline: ${message}`);
    }
    return await work(redis);
  } catch (error) {
    if (reason === undefined && redisFailureKind(error) === 'away' && redis.status === 'ready') throw error;
    throw error instanceof CommandError ? error : redisFailure(address, reason ?? error);
  } finally {
    clearTimeout(connectDeadline);
    // A connection that has ended by itself would keep the process for ioredis' disconnect timeout.
    if (redis.status !== 'end') redis.disconnect();
  }
}

/** The queue that the ingest workers consume, seen from outside. */
export interface UsageQueue {
  /**
   * Puts each of these into the queue as one job, whatever it is. When it rejects, those before may be in the queue; sending events again
   * is harmless, because their ids make them the same events.
   * @returns the ids of the jobs, when Redis has them on its disk as far as it can say
   * @throws CommandError when the disk or the replicas take too long
   */
  send(jobs: readonly unknown[]): Promise<string[]>;
}

/** Does what `withRedis` does, with the queue. */
export async function withQueue<T>(
  { settings }: CommandContext,
  flags: RedisFlags,
  work: (queue: UsageQueue) => Promise<T>,
): Promise<T> {
  const address = await settings.redisUrl(flags);
  const durability = { replicas: parseRedisUrl(address.value).replicas, timeoutMs: RESPONSE_TIMEOUT_MS };
  return withRedis(address, async (redis) => {
    const queue = new Queue(QUEUE_NAME, { connection: redis, prefix: settings.queuePrefix(flags) });
    // The errors of the queue also reject the command that was under way.
    queue.on('error', () => undefined);
    const send = async (jobs: readonly unknown[]) => {
      await queue.waitUntilReady();
      const ids: string[] = [];
      for (const data of jobs) {
        const { id = '' } = await replicated(redis, () => queue.add('usage', data), durability).catch(notReplicated);
        ids.push(id);
      }
      // The connection is still the one that wrote: it is never made again.
      if (ids.length > 0) await requireWritten(redis, RESPONSE_TIMEOUT_MS);
      return ids;
    };
    try {
      return await work({ send });
    } finally {
      await queue.close();
    }
  });
}

function notReplicated(error: unknown): never {
  if (!(error instanceof NotReplicated)) throw error;
  throw new CommandError(`${error.message}; run the same command again later`, undefined, { cause: error });
}

function redisFailure({ value, source }: Setting, cause: unknown): CommandError {
  const target = `Redis at ${displayUrl(value)} (from ${source})`;
  const message = cause instanceof Error ? cause.message : String(cause);
  const text = {
    rejected: `${target} refuses: ${message}`,
    foreign: `what answers at ${displayUrl(value)} (from ${source}) is not Redis`,
    away: `cannot reach ${target}: ${systemErrorCode(cause) ?? message}; ${connectionHint(cause) ?? 'is it running?'}`,
  }[redisFailureKind(cause)];
  return new CommandError(text, undefined, { cause });
}
