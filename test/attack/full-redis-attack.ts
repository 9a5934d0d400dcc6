/** Issue: a full Redis locks itself. Also test/e2e/full-redis.test.ts. */
import { QUEUE_NAME } from '@meterline/catalog';
import { Queue } from 'bullmq';
import { stored, usageEvents } from '../e2e/pipeline.js';
import { fillRedis } from '../redis-memory.js';
import type { Attack } from './attack.js';
import { drained } from './drained.js';
import { mustBecome } from './waiting.js';

const PREFIX = 'attack-full-redis';
const ACCOUNT = 'full-redis';
const JOBS = 200;
const EVENTS_EACH = 100;

export const fullRedisAttack: Attack = {
  name: 'full-redis',
  what: 'a Redis that is at its maxmemory, with jobs that wait in it',
  run: async ({ site, findings }) => {
    const queue = new Queue(QUEUE_NAME, { prefix: PREFIX, connection: { url: site.redisUrl } });
    const query = await site.startQuery();
    const headers = { authorization: `Bearer ${await site.key(ACCOUNT)}`, connection: 'close' };
    try {
      await queue.addBulk(
        Array.from({ length: JOBS }, (_, job) => ({
          name: 'usage',
          data: {
            events: usageEvents(job * EVENTS_EACH, EVENTS_EACH).map((event) => ({ ...event, accountId: ACCOUNT })),
          },
        })),
      );
      await fillRedis(site.redis);
      const refused = await queue.add('usage', {}).then(
        () => '',
        (error: unknown) => String(error),
      );
      if (!refused.includes('OOM')) findings.add('Redis is not full', refused);
      for (const path of ['/v0/accounts', '/readyz', '/healthz']) {
        const { status } = await fetch(query.url + path, { headers });
        if (status !== 200) findings.add(`${path} is ${status} while Redis is full`);
      }
      const worker = await site.startWorker({ QUEUE_PREFIX: PREFIX });
      await drained(queue, findings);
      await mustBecome('a producer is taken again', findings, () =>
        queue.add('usage', { events: [] }).then(
          () => true,
          () => false,
        ),
      );
      const code = await worker.stop();
      if (code !== 0) findings.add(`the worker ended with ${code}`);
      const { events: count } = await stored(site.warehouse, ACCOUNT);
      if (count !== JOBS * EVENTS_EACH) findings.add(`${count} events are stored, not ${JOBS * EVENTS_EACH}`);
      return { sent: `${JOBS} jobs, then no memory`, stood: `emptied; ${count} events stored, each once` };
    } finally {
      await site.redis.config('SET', 'maxmemory', '0');
      await queue.close();
      await query.kill();
    }
  },
};
