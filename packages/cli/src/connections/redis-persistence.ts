import type { RedisClient } from '@meterline/service/access';
import { z } from 'zod';
import { CommandError } from '../failure.js';

/** The reply of WAITAOF: the number of disks that have the writes, first of this Redis (0 or 1), then of its replicas. */
const disksReached = z.tuple([z.number(), z.number()]);

/**
 * Waits until Redis has written earlier commands to its disk. Redis can report this from version 7.2 on, with an append-only file. Any other
 * Redis cannot report it, so this function then returns immediately.
 * @throws CommandError after the timeout
 */
export async function requireWritten(redis: RedisClient, timeoutMs: number): Promise<void> {
  if (!reportsItsDisk(await redis.info('server'), await redis.info('persistence'))) return;
  const [local] = disksReached.parse(await redis.call('WAITAOF', 1, 0, timeoutMs));
  if (local === 1) return;
  throw new CommandError(`Redis did not write to its disk within ${timeoutMs / 1000} s; try again later`);
}

/** Returns whether Redis supports WAITAOF. @param server, persistence sections of INFO. Source: Redis documentation, WAITAOF */
export function reportsItsDisk(server: string, persistence: string): boolean {
  const [, major = 0, minor = 0] = /^redis_version:(\d+)\.(\d+)/m.exec(server) ?? [];
  const isRecent = Number(major) > 7 || (Number(major) === 7 && Number(minor) >= 2);
  return isRecent && /^aof_enabled:1\r?$/m.test(persistence);
}
