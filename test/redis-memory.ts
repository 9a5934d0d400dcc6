import type { Redis } from 'ioredis';

/** Leaves no room for another command, as jobs that wait would. */
export async function fillRedis(redis: Redis): Promise<void> {
  const [, used] = /^used_memory:(\d+)/m.exec(await redis.info('memory')) ?? [];
  await redis.config('SET', 'maxmemory', String(Number(used) - 200_000));
}
