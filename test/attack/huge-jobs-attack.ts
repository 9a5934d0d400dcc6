/** Issue: a huge job kills workers again and again. Also test/e2e/rejections.test.ts. */
import { QUEUE_NAME } from '@meterline/catalog';
import { Queue } from 'bullmq';
import { stored, usageEvent } from '../e2e/pipeline.js';
import { select } from '../stack.js';
import type { Attack } from './attack.js';
import { drained } from './drained.js';
import { MemoryWatch } from './memory.js';

const PREFIX = 'attack-huge';
const ACCOUNT = 'huge';
/** 60 MB of `{"events":[{},…]}`. */
const HUGE = `{"events":[${'{},'.repeat(20_000_000)}{}]}`;
const HUGE_JOBS = 2;
const GOOD_JOBS = 50;
const BROKEN = [
  { opts: '{oops' },
  { opts: 'null' },
  { parent: '{oops', parentKey: 'bull:flows:1' },
  { parentKey: 'x' },
  { rjk: 'a:b:c:d:e' },
  { ats: 'x' },
];
const MEMORY_BOUND_MIB = 500;

export const hugeJobsAttack: Attack = {
  name: 'huge-jobs',
  what: 'jobs of 60 MB and broken hashes among good jobs',
  run: async ({ site, findings }) => {
    const queue = new Queue(QUEUE_NAME, { prefix: PREFIX, connection: { url: site.redisUrl } });
    const goodText = (n: number) => JSON.stringify({ events: [usageEvent(n, { accountId: ACCOUNT })] });
    const addRaw = async (fields: Record<string, string>) => {
      const { id = '' } = await queue.add('usage', {});
      await site.redis.hset(queue.toKey(id), fields);
      return id;
    };
    try {
      const huge: string[] = [];
      for (let n = 0; n < HUGE_JOBS; n += 1) huge.push(await addRaw({ data: HUGE }));
      for (const [n, fields] of BROKEN.entries()) await addRaw({ ...fields, data: goodText(n) });
      const good = Array.from({ length: GOOD_JOBS }, (_, n) => BROKEN.length + n);
      await queue.addBulk(good.map((n) => ({ name: 'usage', data: JSON.parse(goodText(n)) })));

      const worker = await site.startWorker({ QUEUE_PREFIX: PREFIX });
      const memory = new MemoryWatch(worker.pid);
      await drained(queue, findings);
      const report = memory.judged(MEMORY_BOUND_MIB, findings);
      const code = await worker.stop();
      if (code !== 0) findings.add(`the worker ended with ${code}`, worker.log().slice(-500));

      const { events: count } = await stored(site.warehouse, ACCOUNT);
      const events = GOOD_JOBS + BROKEN.length;
      if (count !== events) findings.add(`${count} events are stored, not ${events}`);
      const kept = await select<{ job_id: string; bytes: number }>(
        site.warehouse,
        `SELECT job_id, toUInt32(sum(length(content))) AS bytes FROM rejected_payloads FINAL
         WHERE job_id IN (SELECT job_id FROM rejected_events WHERE reason = 'job_oversized') GROUP BY job_id`,
      );
      const whole = kept.filter(({ job_id, bytes }) => huge.includes(job_id) && bytes === HUGE.length);
      if (whole.length !== HUGE_JOBS)
        findings.add(`${whole.length} of ${HUGE_JOBS} huge jobs are kept whole`, JSON.stringify(kept));
      return {
        sent: `${HUGE_JOBS} jobs of 60 MB, ${BROKEN.length} broken hashes, ${GOOD_JOBS} good jobs`,
        stood: `${events} events stored, ${HUGE_JOBS} refusals with all their data; ${report}`,
      };
    } finally {
      await queue.close();
    }
  },
};
