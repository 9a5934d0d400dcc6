/** Checks whether Meterline can use a Redis server: its version, mode, scripts, eviction policy and free memory. */
import type { RedisClient } from './redis.js';

/** The first version with the script flag `allow-oom`, which lets scripts run while Redis is full. */
const OLDEST_REDIS = 7;
/** Calls the Lua libraries that Meterline and BullMQ need. It writes nothing, so it also runs on a replica and while the disk is full. */
const SCRIPT_CHECK = `#!lua flags=allow-oom,no-writes
return cmsgpack.unpack(cmsgpack.pack(cjson.decode('1')))`;

export interface RedisStatus {
  /** Why Meterline cannot rely on this Redis, or undefined if it can. Messages show the problem after the word "Redis". */
  readonly problem: string | undefined;
  /** Whether commands and scripts work. Operators can then still read and delete data, even if there is a problem. */
  readonly isUsable: boolean;
  /** Whether Redis rejects commands that may need memory, such as adding jobs. */
  readonly isFull: boolean;
}

/** Requires permission for INFO and EVAL, but not for CONFIG. @throws if Redis does not respond */
export async function readRedisStatus(redis: RedisClient): Promise<RedisStatus> {
  try {
    const info = await redis.info();
    const misfit = misfitOf(info);
    if (misfit === undefined) await redis.eval(SCRIPT_CHECK, 0);
    return { problem: misfit ?? evictionIn(info), isUsable: misfit === undefined, isFull: isFull(info) };
  } catch (error) {
    // Other errors, such as LOADING and BUSY, are temporary.
    if (!(error instanceof Error) || !/^(ERR|NOPERM) /.test(error.message)) throw error;
    const [reason] = error.message.split(', with args', 1);
    const problem = `cannot run INFO and the scripts of Meterline and BullMQ (${reason}): use Redis or Valkey, with the rights of redis/users.conf`;
    return { problem, isUsable: false, isFull: false };
  }
}

function misfitOf(info: string): string | undefined {
  // Valkey reports the version of Redis that it is compatible with.
  const version = field(info, 'redis_version') ?? '';
  if (Number.parseInt(version, 10) < OLDEST_REDIS) return `is version ${version}: use ${OLDEST_REDIS} or newer`;
  if (field(info, 'redis_mode') === 'cluster' || field(info, 'cluster_enabled') === '1') {
    return 'is a cluster, which Meterline cannot use: use one server, or a master and replicas with Sentinels (redis+sentinel://)';
  }
  return undefined;
}

function evictionIn(info: string): string | undefined {
  const policy = field(info, 'maxmemory_policy') ?? 'unknown';
  if (policy === 'noeviction') return undefined;
  return `may evict events and API keys, with maxmemory-policy ${policy}: set maxmemory-policy noeviction`;
}

/** The memory for the buffers of replicas does not count toward the limit. Source: Redis, getMaxmemoryState() in evict.c. */
export function isFull(info: string): boolean {
  const bytes = (name: string) => Number(field(info, name) ?? 0);
  const limit = bytes('maxmemory');
  return limit > 0 && bytes('used_memory') - bytes('mem_not_counted_for_evict') > limit;
}

const field = (info: string, name: string) => new RegExp(`^${name}:(\\S+)`, 'm').exec(info)?.[1];
