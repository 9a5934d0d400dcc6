/** Redis is killed, or runs and cannot be reached. */
import type { Fault, Scene } from './fault.js';
import { pause } from './waiting.js';

export const redisKilled: Fault = {
  name: 'redis-killed',
  injects: '`kill -9` of Redis, once or twice, restarted with its append-only file',
  workers: 2,
  proxied: 'nothing',
  weight: 14,
  strike: async ({ site, random, signal }) => {
    for (let times = random.integer(1, 2); times > 0; times -= 1) {
      await site.redis.kill();
      await pause(random.integer(0, 3_000), signal);
      await site.redis.start();
      await pause(random.integer(0, 600), signal);
    }
  },
};

export const redisUnreachable: Fault = {
  name: 'redis-unreachable',
  injects: 'for up to a minute Redis is frozen, or connections to it hang, or are refused',
  workers: 2,
  proxied: 'redis',
  weight: 6,
  strike: async (scene) => {
    const { random, brief, signal } = scene;
    const isAway = random.pick([frozen, hanging, refused]);
    const comeBack = isAway(scene);
    try {
      await pause(brief ? 3_000 : random.pick([5_000, 20_000, 60_000]), signal);
    } finally {
      comeBack();
    }
  },
};

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
