/** Waits until Redis has what was written on its disk. */
import type { RedisClient } from '@meterline/service/access';
import { z } from 'zod';
import { CommandError } from '../failure.js';

/** The number of disks that have the writes: that of Redis (0 or 1), and those of replicas. */
const disksReached = z.tuple([z.number(), z.number()]);

/**
 * Redis reports what is on its disk from version 7.2 on, and only with an append-only file. Of any other Redis only the response is known.
 * @throws CommandError after the timeout
 */
export async function requireWritten(redis: RedisClient, timeoutMs: number): Promise<void> {
  if (!reportsItsDisk(await redis.info('server'), await redis.info('persistence'))) return;
  const [local] = disksReached.parse(await redis.call('WAITAOF', 1, 0, timeoutMs));
  if (local === 1) return;
  throw new CommandError(`Redis has not written to its disk within ${timeoutMs / 1000} s; try again later`);
}

/** @param server, persistence the sections of INFO. Source: Redis documentation, WAITAOF */
export function reportsItsDisk(server: string, persistence: string): boolean {
  const [, major = 0, minor = 0] = /^redis_version:(\d+)\.(\d+)/m.exec(server) ?? [];
  const isRecent = Number(major) > 7 || (Number(major) === 7 && Number(minor) >= 2);
  return isRecent && /^aof_enabled:1\r?$/m.test(persistence);
}
