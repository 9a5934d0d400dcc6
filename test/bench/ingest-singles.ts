/** One event a job, beside a worker of the same concurrency that does nothing with it. */
import { QUEUE_PREFIX } from '@meterline/catalog';
import type { Bench } from './bench.js';
import { atLeast, median } from './figure.js';
import { measureInTurn } from './measure.js';
import { startScript } from './script.js';
import { drainRate, openQueue } from './usage-queue.js';

const DATABASE = 'ingest_singles';
const JOBS = 20_000;
/** The worker's default. */
const CONCURRENCY = 500;
const IDLE_PREFIX = 'bench-idle';

export const ingestSingles: Bench = {
  name: 'ingest-1',
  async run({ site }) {
    await site.warehouse(DATABASE);
    const queue = openQueue(site.redisUrl, QUEUE_PREFIX);
    const idleQueue = openQueue(site.redisUrl, IDLE_PREFIX);
    const idle = startScript('./idle-worker.ts', [site.redisUrl, IDLE_PREFIX, String(CONCURRENCY)]);
    const environment = { CLICKHOUSE_DATABASE: DATABASE, INGEST_CONCURRENCY: String(CONCURRENCY) };
    try {
      const [workerRates, idleRates] = await site.withIngest(environment, () =>
        measureInTurn(
          () => drainRate(queue, JOBS, 1),
          () => drainRate(idleQueue, JOBS, 1),
        ),
      );
      const worker = median(workerRates);
      const nothing = median(idleRates);
      return [
        {
          bench: 'ingest-1',
          what: 'one event a job, queue to durable',
          value: worker,
          unit: 'jobs/s',
          runs: workerRates,
          beside: [{ what: 'BullMQ worker that does nothing', value: nothing, unit: 'jobs/s' }],
          reach: atLeast(worker / nothing, 0.85),
        },
      ];
    } finally {
      await idle.stop();
      await Promise.all([queue.close(), idleQueue.close()]);
      await site.drop(DATABASE);
    }
  },
};
