/** Connects to ClickHouse and Redis without retries: a command in a terminal should fail with a clear message instead of waiting. */
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
import type { Setting } from '../setting-sources.js';
import { type ClickHouseFlags, type ClickHouseSettings, displayUrl, type RedisFlags } from '../settings.js';
import { requireWritten } from './redis-persistence.js';

/** Maximum time until the first reply of the server. An open connection is not enough. */
const CONNECT_TIMEOUT_MS = 5_000;
/** Long, because a migration may rewrite data. */
const STATEMENT_TIMEOUT_MS = 600_000;
/** A Redis that sends nothing for this time while a reply is due counts as unavailable. */
const SILENCE_TIMEOUT_MS = 30_000;
/** Maximum time until a job has reached the replicas and the disk of Redis. */
const DURABILITY_TIMEOUT_MS = 10_000;

/** Checks that ClickHouse is reachable and accepts the login. Returns options to open a warehouse. @throws CommandError otherwise */
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
 * Runs `work` with connections to all shards of the database (a single server is one shard), and closes them.
 * @throws CommandError if ClickHouse cannot be reached, disconnects or rejects a statement, or if `work` throws a CommandError
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

/** Returns the error of a statement or connection, with a message of one line that names the server. */
export function clickHouseFailure({ url, user }: ClickHouseSettings, cause: unknown): CommandError {
  const target = `ClickHouse at ${displayUrl(url.value)} (from ${url.source})`;
  const message = cause instanceof Error ? cause.message.split('\n', 1)[0] : String(cause);
  const isSlow = message === `no response within ${STATEMENT_TIMEOUT_MS} ms`;
  const text = {
    rejected: `${target} rejected a statement (as user ${user}): ${message}`,
    unfit: `${target} cannot be used (as user ${user}): ${message}`,
    foreign: `${target} does not respond like ClickHouse${message && `: ${message}`}`,
    defect: `${target} could not be used because of a bug in Meterline: ${message}`,
    away: isSlow
      ? `${target}: ${message}; the statement may still be running, so wait for it (see system.mutations) and run the same command again`
      : `cannot reach ${target}: ${systemErrorCode(cause)}; ${connectionHint(cause) ?? 'is it running?'}`,
  }[clickHouseFailureKind(cause)];
  return new CommandError(text, undefined, { cause });
}

/**
 * Runs `work` with a connection to Redis, and closes the connection.
 * @param warnings set it if `work` adds no data to Redis: a Redis that may evict data then causes only a warning, and otherwise an error
 * @throws CommandError if Redis cannot be reached, may lose data, disconnects or rejects a command
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
  // Only this event has the reason why a connection failed. The error of a command is just "connection is closed".
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
    // ioredis connects even if it cannot select the database in the address, and would then use database 0.
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
    // Disconnecting a closed connection would keep the process alive for the disconnect timeout of ioredis.
    if (redis.status !== 'end') redis.disconnect();
  }
}

export interface UsageQueue {
  /**
   * Adds jobs to the queue. If this fails, some jobs may be in the queue. The caller may safely send their events again, because events
   * with the same ID count once.
   * @returns the IDs of the jobs, after they are on the replicas of Redis and on its disk (if Redis can report that)
   * @throws CommandError if the disk or the replicas take too long
   */
  send(jobs: readonly unknown[]): Promise<string[]>;
}

export async function withQueue<T>(
  { settings }: CommandContext,
  flags: RedisFlags,
  work: (queue: UsageQueue) => Promise<T>,
): Promise<T> {
  const address = await settings.redisUrl(flags);
  const durability = { replicas: parseRedisUrl(address.value).replicas, timeoutMs: DURABILITY_TIMEOUT_MS };
  return withRedis(address, async (redis) => {
    const queue = new Queue(QUEUE_NAME, { connection: redis, prefix: settings.queuePrefix(flags) });
    // Ignore the queue's error events. The same errors also reject the pending command, which reports them.
    queue.on('error', () => undefined);
    const send = async (jobs: readonly unknown[]) => {
      await queue.waitUntilReady();
      const ids: string[] = [];
      for (const data of jobs) {
        const { id = '' } = await replicated(redis, () => queue.add('usage', data), durability).catch(notReplicated);
        ids.push(id);
      }
      // WAITAOF covers only writes of its own connection. This client never reconnects, so the writes were on the same connection.
      if (ids.length > 0) await requireWritten(redis, DURABILITY_TIMEOUT_MS);
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
    rejected: `${target} rejected a command: ${message}`,
    foreign: `the server at ${displayUrl(value)} (from ${source}) is not Redis`,
    away: `cannot reach ${target}: ${systemErrorCode(cause) ?? message}; ${connectionHint(cause) ?? 'is it running?'}`,
  }[redisFailureKind(cause)];
  return new CommandError(text, undefined, { cause });
}
