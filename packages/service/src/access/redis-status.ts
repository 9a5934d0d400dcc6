/** Whether Meterline can rely on a Redis (its version, its mode, its scripts, and that it evicts nothing), and whether it is full. */
import type { RedisClient } from './redis.js';

/** From this version on, scripts may run while Redis is full. */
const OLDEST_REDIS = 7;
/** Uses what the scripts of Meterline and BullMQ need, and writes nothing, so it also runs on a replica and when the disk is full. */
const SCRIPT_CHECK = `#!lua flags=allow-oom,no-writes
return cmsgpack.unpack(cmsgpack.pack(cjson.decode('1')))`;

export interface RedisStatus {
  /** Why Meterline cannot rely on this Redis, as text to follow "Redis"; undefined if it can. */
  readonly problem: string | undefined;
  /** A full Redis refuses every command that could need memory, such as those that add jobs. */
  readonly isFull: boolean;
}

/** Needs INFO and EVAL, and no right to read the configuration. @throws when Redis does not answer */
export async function readRedisStatus(redis: RedisClient): Promise<RedisStatus> {
  try {
    const info = await redis.info();
    const problem = serverProblem(info) ?? (await scriptProblem(redis)) ?? evictionProblem(info);
    return { problem, isFull: isFull(info) };
  } catch (error) {
    if (!isRefusal(error)) throw error;
    const problem = `does not let its user run INFO (${error.message}): allow it, as redis/users.conf does`;
    return { problem, isFull: false };
  }
}

function serverProblem(info: string): string | undefined {
  // Valkey reports the version of Redis that it is compatible with, and its own name of the mode.
  const [, version = 'unknown', major = 0] = /^redis_version:((\d+)\S*)/m.exec(info) ?? [];
  if (Number(major) < OLDEST_REDIS) return `is version ${version}: Meterline needs ${OLDEST_REDIS} or newer`;
  if (!/^(?:(?:redis|server)_mode:cluster|cluster_enabled:1)\r?$/m.test(info)) return undefined;
  return 'is a cluster, which Meterline cannot use: use one server, or a master and replicas with Sentinels (redis+sentinel://)';
}

async function scriptProblem(redis: RedisClient): Promise<string | undefined> {
  try {
    await redis.eval(SCRIPT_CHECK, 0);
    return undefined;
  } catch (error) {
    if (!isRefusal(error)) throw error;
    // Redis repeats the script after a comma.
    const [reason] = error.message.split(',', 1);
    return `cannot run the scripts of Meterline and BullMQ (${reason}): use Redis or Valkey, and let its user run EVAL`;
  }
}

function evictionProblem(info: string): string | undefined {
  const [, policy = 'unknown'] = /^maxmemory_policy:(\S+)/m.exec(info) ?? [];
  if (policy === 'noeviction') return undefined;
  return `may evict events and API keys, with maxmemory-policy ${policy}: set maxmemory-policy noeviction`;
}

/** Source: Redis, getMaxmemoryState() in evict.c: buffers of replicas do not count */
export function isFull(info: string): boolean {
  const field = (name: string) => Number(new RegExp(`^${name}:(\\d+)`, 'm').exec(info)?.[1] ?? 0);
  const limit = field('maxmemory');
  return limit > 0 && field('used_memory') - field('mem_not_counted_for_evict') > limit;
}

/** The server or the user's rights do not allow the command. Other errors, such as LOADING and BUSY, pass. */
function isRefusal(error: unknown): error is Error {
  return error instanceof Error && error.name === 'ReplyError' && /^(ERR|NOPERM) /.test(error.message);
}
