/** Issue: old-dated events hold up everyone. Also services/ingest/src/lanes.test.ts. */
import { QUEUE_NAME } from '@meterline/catalog';
import { Queue, QueueEvents } from 'bullmq';
import { stored, usageEvent } from '../e2e/pipeline.js';
import type { Attack } from './attack.js';
import { drained } from './drained.js';

const PREFIX = 'attack-old';
const OLD_JOBS = 1;
const OLD_EVENTS = 5_000;
const CURRENT_JOBS = 20;
const FIRST_YEAR = 1970;
const MONTHS = 12 * 56;

export const oldEventsAttack: Attack = {
  name: 'old-events',
  what: 'a job of 5,000 events over 1970 to 2026, before jobs of current events',
  run: async ({ site, findings }) => {
    const connection = { url: site.redisUrl };
    const queue = new Queue(QUEUE_NAME, { prefix: PREFIX, connection });
    const ended = new QueueEvents(QUEUE_NAME, { prefix: PREFIX, connection });
    const done: string[] = [];
    ended.on('completed', ({ jobId }) => done.push(jobId));
    try {
      await ended.waitUntilReady();
      const worker = await site.startWorker({ QUEUE_PREFIX: PREFIX, SEAL_EVERY_MS: '0' });
      const old: string[] = [];
      for (let job = 0; job < OLD_JOBS; job += 1) {
        const events = Array.from({ length: OLD_EVENTS }, (_, n) =>
          usageEvent(job * OLD_EVENTS + n, {
            accountId: 'old',
            timestamp: new Date(Date.UTC(FIRST_YEAR, n % MONTHS, 1 + (n % 28))).toISOString(),
          }),
        );
        old.push((await queue.add('usage', { events })).id ?? '');
      }
      const current: string[] = [];
      for (let n = 0; n < CURRENT_JOBS; n += 1) {
        const event = usageEvent(n, { accountId: 'current', timestamp: new Date().toISOString() });
        current.push((await queue.add('usage', { events: [event] })).id ?? '');
      }
      await drained(queue, findings);
      const code = await worker.stop();
      if (code !== 0) findings.add(`the worker ended with ${code}`);
      const lastOld = Math.max(...old.map((id) => done.indexOf(id)));
      const late = current.filter((id) => done.indexOf(id) > lastOld);
      if (late.length > 0) findings.add(`${late.length} jobs of current events ended after all jobs of old ones`);
      for (const [account, count] of [
        ['old', OLD_JOBS * OLD_EVENTS],
        ['current', CURRENT_JOBS],
      ] as const) {
        const { events } = await stored(site.warehouse, account);
        if (events !== count) findings.add(`${events} ${account} events are stored, not ${count}`);
      }
      return {
        sent: `${OLD_JOBS} job of ${OLD_EVENTS} old events, ${CURRENT_JOBS} of a current one`,
        stood: 'the current ones ended before the old ones; all stored, each once',
      };
    } finally {
      await Promise.all([queue.close(), ended.close()]);
    }
  },
};
