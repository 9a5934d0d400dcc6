import { Redis } from 'ioredis';
import { CommandError, systemErrorCode } from '../command-error.js';
import { displayUrl, type Setting } from '../settings/settings.js';

/** Until the server has answered, not only until the connection stands. */
const CONNECT_TIMEOUT_MS = 5_000;
/** A server that stays silent for this long while it owes an answer counts as gone. */
const SILENCE_TIMEOUT_MS = 30_000;

/**
 * Runs `work` with a connection to Redis and closes it. The connection is tried once and never re-made: a command in
 * a terminal must end with a clear message rather than wait.
 * @throws CommandError when Redis cannot be reached, goes away or refuses a command
 */
export async function withRedis<T>(address: Setting, work: (redis: Redis) => Promise<T>): Promise<T> {
  const redis = new Redis(address.value, {
    lazyConnect: true,
    socketTimeout: SILENCE_TIMEOUT_MS,
    maxRetriesPerRequest: null,
    enableOfflineQueue: false,
    retryStrategy: () => null,
  });
  // The reason stands in this event; the command that was under way says only that the connection is closed.
  let reason: Error | undefined;
  redis.on('error', (error: Error) => {
    reason ??= error;
  });
  const connectDeadline = setTimeout(() => {
    reason ??= new Error(`no answer within ${CONNECT_TIMEOUT_MS / 1000} s`);
    redis.disconnect();
  }, CONNECT_TIMEOUT_MS);
  try {
    await redis.connect();
    clearTimeout(connectDeadline);
    return await work(redis);
  } catch (error) {
    if (reason === undefined && !isRefusal(error) && redis.status === 'ready') throw error;
    if (error instanceof CommandError) throw error;
    throw redisFailure(address, reason ?? error);
  } finally {
    clearTimeout(connectDeadline);
    // A connection that has ended by itself would keep the process for ioredis' disconnect timeout.
    if (redis.status !== 'end') redis.disconnect();
  }
}

/** Redis answered, and the answer is an error: a wrong password, no memory, read-only. */
function isRefusal(error: unknown): error is Error {
  return error instanceof Error && error.name === 'ReplyError';
}

function redisFailure({ value, source }: Setting, cause: unknown): CommandError {
  const place = `Redis at ${displayUrl(value)} (from ${source})`;
  if (isRefusal(cause)) return new CommandError(`${place} refuses: ${cause.message}`, undefined, { cause });
  const detail = systemErrorCode(cause) ?? (cause instanceof Error ? cause.message : String(cause));
  return new CommandError(`cannot reach ${place}: ${detail}; is it running?`, undefined, { cause });
}
