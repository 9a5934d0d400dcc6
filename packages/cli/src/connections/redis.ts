import { createRedisClient, moreInformative, type RedisClient, redisFailureKind } from '@meterline/access';
import { parseRedisUrl } from '@meterline/catalog';
import type { UsageQueue } from '@meterline/operations/usage-queue';
import { type CommandContext, CommandError, systemErrorCode } from '../command.js';
import { displayUrl, type RedisFlags, type Setting } from '../settings/settings.js';

/** Until the server has answered, not only until the connection stands. */
const CONNECT_TIMEOUT_MS = 5_000;
/** A server that stays silent for this long while it owes an answer counts as gone. */
const SILENCE_TIMEOUT_MS = 30_000;

/**
 * Runs `work` with a connection to Redis and closes it. The connection is tried once and never re-made: a command in
 * a terminal must end with a clear message rather than wait.
 * @throws CommandError when Redis cannot be reached, goes away or refuses a command
 */
export async function withRedis<T>(address: Setting, work: (redis: RedisClient) => Promise<T>): Promise<T> {
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
    reason ??= new Error(`no answer within ${CONNECT_TIMEOUT_MS / 1000} s`);
    redis.disconnect();
  }, CONNECT_TIMEOUT_MS);
  try {
    await redis.connect();
    clearTimeout(connectDeadline);
    // Connected even if the database that the address names could not be selected: the first one would be used.
    if (reason !== undefined) throw reason;
    return await work(redis);
  } catch (error) {
    if (reason === undefined && redisFailureKind(error) === 'away' && redis.status === 'ready') throw error;
    if (error instanceof CommandError) throw error;
    throw redisFailure(address, reason ?? error);
  } finally {
    clearTimeout(connectDeadline);
    // A connection that has ended by itself would keep the process for ioredis' disconnect timeout.
    if (redis.status !== 'end') redis.disconnect();
  }
}

/** The same with the queues of the ingest workers. Jobs carry the trace of the command, if it has one. */
export async function withQueue<T>(
  { settings, tracing }: CommandContext,
  flags: RedisFlags,
  work: (queue: UsageQueue) => Promise<T>,
): Promise<T> {
  const address = await settings.redisUrl(flags);
  const shards = settings.queueShards();
  return withRedis(address, async (redis) => {
    const { queueTelemetry } = await tracing();
    const { UsageQueue } = await import('@meterline/operations/usage-queue');
    const { replicas } = parseRedisUrl(address.value);
    const prefix = settings.queuePrefix(flags);
    const queue = new UsageQueue(redis, { prefix, shards, replicas, telemetry: queueTelemetry });
    try {
      return await work(queue);
    } finally {
      await queue.close();
    }
  });
}

function redisFailure({ value, source }: Setting, cause: unknown): CommandError {
  const place = `Redis at ${displayUrl(value)} (from ${source})`;
  const message = cause instanceof Error ? cause.message : String(cause);
  const kind = redisFailureKind(cause);
  if (kind === 'refused') return new CommandError(`${place} refuses: ${message}`, undefined, { cause });
  if (kind === 'foreign') {
    const other = `what answers at ${displayUrl(value)} (from ${source}) is not Redis`;
    return new CommandError(other, undefined, { cause });
  }
  const detail = systemErrorCode(cause) ?? message;
  return new CommandError(`cannot reach ${place}: ${detail}; is it running?`, undefined, { cause });
}
