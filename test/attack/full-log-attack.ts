/** Issue: a full log volume freezes both services. Also test/observability/full-log.test.ts. */
import { QUEUE_NAME } from '@meterline/catalog';
import { Queue, QueueEvents } from 'bullmq';
import { startWithFullLog, untilAnswered } from '../full-log.js';
import type { Attack } from './attack.js';
import { USAGE } from './seed-usage.js';

const PREFIX = 'attack-full-log';
const ACCOUNT = 'full-log';
const REQUESTS = 200;

export const fullLogAttack: Attack = {
  name: 'full-log',
  what: 'both services at work with their log on a full disk',
  run: async ({ site, findings }) => {
    const env = { ...site.environment, QUEUE_PREFIX: PREFIX, LOG_LEVEL: 'trace' };
    const [worker, query] = [await startWithFullLog('ingest', env), await startWithFullLog('query', env)];
    const connection = { url: site.redisUrl };
    const [queue, ended] = [
      new Queue(QUEUE_NAME, { prefix: PREFIX, connection }),
      new QueueEvents(QUEUE_NAME, { prefix: PREFIX, connection }),
    ];
    try {
      const job = await queue.add('usage', { events: USAGE.map((event) => ({ ...event, accountId: ACCOUNT })) });
      await job.waitUntilFinished(ended);
      await untilAnswered(query, '/readyz');
      const headers = { authorization: `Bearer ${await site.key(ACCOUNT)}` };
      const path = `/v0/accounts/${ACCOUNT}/metrics?startTime=2025-10-01T00:00:00Z&endTime=2025-10-02T00:00:00Z`;
      for (let n = 0; n < REQUESTS; n += 1) {
        const { status } = await fetch(query.url + (n % 2 === 0 ? path : `/${'x'.repeat(5_000)}`), { headers });
        if (status !== (n % 2 === 0 ? 200 : 404)) findings.add(`an answer is ${status}`);
      }
      for (const { child, ended: gone } of [worker, query]) {
        child.kill('SIGTERM');
        const { code, stderr } = await gone;
        if (code !== 0) findings.add(`a service ended with ${code}`, stderr);
      }
      return { sent: `1 job, ${REQUESTS} requests, SIGTERM`, stood: 'all answered, both ended with 0' };
    } finally {
      for (const { child } of [worker, query]) child.kill('SIGKILL');
      await Promise.all([queue.close(), ended.close()]);
    }
  },
};
