/** Redis is killed, or has no memory left, or runs and cannot be reached. */
import { Redis } from 'ioredis';
import { z } from 'zod';
import type { Fault, Scene } from './fault.js';
import { awayFor, killAndStart } from './strikes.js';
import { holdsWithin, pause } from './waiting.js';

const FULL_WITHIN_MS = 20_000;

export const redisKilled: Fault = {
  name: 'redis-killed',
  injects: '`kill -9` of Redis, once or twice, restarted with its append-only file',
  workers: 2,
  proxied: 'nothing',
  weight: 14,
  redis: 'server',
  strike: (scene) => killAndStart(scene, () => scene.site.redis),
};

export const redisUnreachable: Fault = {
  name: 'redis-unreachable',
  injects: 'for up to a minute Redis is frozen, or connections to it hang, or are refused',
  workers: 2,
  proxied: 'redis',
  weight: 6,
  redis: 'server',
  strike: (scene) => {
    const isAway = scene.random.pick([frozen, hanging, refused]);
    return awayFor([5_000, 20_000, 60_000], scene, isAway(scene));
  },
};

export const redisFull: Fault = {
  name: 'redis-full',
  injects: 'Redis has no memory left: its limit is what it uses now, and is raised again later',
  workers: 2,
  proxied: 'nothing',
  weight: 6,
  redis: 'server',
  strike: async ({ site, random, brief, signal, complain }) => {
    const redis = new Redis(site.redisUrl);
    const [, before = '0'] = z.array(z.string()).parse(await redis.config('GET', 'maxmemory'));
    const [, used = ''] = /^used_memory:(\d+)/m.exec(await redis.info('memory')) ?? [];
    await redis.config('SET', 'maxmemory', used);
    try {
      const isFull = await holdsWithin(FULL_WITHIN_MS, signal, async () => (await refusal(redis)).startsWith('OOM'));
      if (!isFull) complain('Redis was never full');
      await pause(brief ? 1_500 : random.integer(1_000, 10_000), signal);
    } finally {
      await redis.config('SET', 'maxmemory', before);
      redis.disconnect();
    }
  },
};

/** What Redis answers to a write. */
async function refusal(redis: Redis): Promise<string> {
  try {
    return await redis.set('fault-tests:probe', 'x', 'EX', 1);
  } catch (error) {
    return error instanceof Error ? error.message : String(error);
  }
}

function frozen({ site }: Scene): () => void {
  const { pid } = site.redis.running;
  process.kill(pid, 'SIGSTOP');
  return () => process.kill(pid, 'SIGCONT');
}

function hanging({ site }: Scene): () => void {
  site.redisLink.treat({ kind: 'hang' });
  return () => site.redisLink.treat({ kind: 'pass' });
}

function refused({ site }: Scene): () => void {
  site.redisLink.treat({ kind: 'refuse' });
  return () => site.redisLink.treat({ kind: 'pass' });
}
