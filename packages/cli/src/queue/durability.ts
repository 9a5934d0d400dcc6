import type { Redis } from 'ioredis';
import { z } from 'zod';
import { CommandError } from '../command-error.js';

const DISK_TIMEOUT_MS = 10_000;

/** Its own, and those of replicas. */
const disksReached = z.tuple([z.number(), z.number()]);

/**
 * Resolves when Redis has what this connection wrote on its disk. Redis tells that from 7.2 on, and only with an
 * append-only file; of any other it can only be said that it has answered, as it does to every producer.
 * @throws CommandError when the disk takes too long
 */
export async function writtenToDisk(redis: Redis): Promise<void> {
  if (!tellsOfItsDisk(await redis.info('server'), await redis.info('persistence'))) return;
  const [local] = disksReached.parse(await redis.call('WAITAOF', 1, 0, DISK_TIMEOUT_MS));
  if (local === 1) return;
  throw new CommandError(`Redis has not written to its disk within ${DISK_TIMEOUT_MS / 1000} s; try again later`);
}

/** @param server, persistence the sections of INFO. Source: Redis documentation, WAITAOF */
export function tellsOfItsDisk(server: string, persistence: string): boolean {
  const [, major = 0, minor = 0] = /^redis_version:(\d+)\.(\d+)/m.exec(server) ?? [];
  const isRecent = Number(major) > 7 || (Number(major) === 7 && Number(minor) >= 2);
  return isRecent && /^aof_enabled:1\r?$/m.test(persistence);
}
