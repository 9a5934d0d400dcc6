/** One event per job, compared with a worker of the same concurrency that does nothing. */
import { QUEUE_PREFIX } from '@meterline/catalog';
import type { Bench } from './bench.js';
import { atLeast, median } from './figure.js';
import { measureInTurn } from './measure.js';
import { drainRate } from './usage-queue.js';

const DATABASE = 'ingest_singles';
const JOBS = 16_000;
/** The worker's default. */
const CONCURRENCY = 500;
const IDLE_PREFIX = 'bench-idle';

export const ingestSingles: Bench = {
  name: 'ingest-1',
  async run({ site }) {
    await site.warehouse(DATABASE);
    const queue = site.queue(QUEUE_PREFIX);
    const idleQueue = site.queue(IDLE_PREFIX);
    const environment = { CLICKHOUSE_DATABASE: DATABASE, INGEST_CONCURRENCY: String(CONCURRENCY) };
    const [workerRates, idleRates] = await site.withScript(
      './idle-worker.ts',
      [site.redisUrl, IDLE_PREFIX, String(CONCURRENCY)],
      () =>
        site.withIngest(environment, () =>
          measureInTurn(
            () => drainRate(queue, JOBS, 1),
            () => drainRate(idleQueue, JOBS, 1),
          ),
        ),
    );
    await site.drop(DATABASE);
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
  },
};
