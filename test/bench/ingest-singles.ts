/** One event per job, compared with a BullMQ worker that does nothing. */
import { QUEUE_PREFIX } from '@meterline/catalog';
import type { Bench } from './bench.js';
import { atLeast, median } from './figure.js';
import { measureInTurn } from './measure.js';
import { ProcessorTimes } from './processor-times.js';
import { drainRate } from './usage-queue.js';

const DATABASE = 'ingest_singles';
/** Some seconds of work: the last insert of a run waits for others that do not come. */
const JOBS = 40_000;
/** With more, BullMQ's own loop is slower: it fills all places before it begins a job. */
const IDLE_CONCURRENCY = 500;
const IDLE_PREFIX = 'bench-idle';

export const ingestSingles: Bench = {
  name: 'ingest-1',
  async run({ site }) {
    await site.warehouse(DATABASE);
    const queue = site.queue(QUEUE_PREFIX);
    const idleQueue = site.queue(IDLE_PREFIX);
    const environment = { CLICKHOUSE_DATABASE: DATABASE };
    const idleArgs = [site.redisUrl, IDLE_PREFIX, String(IDLE_CONCURRENCY)];
    const [workerRates, idleRates, spent] = await site.withScript('./idle-worker.ts', idleArgs, () =>
      site.withIngest(environment, async (ingest) => {
        const times = new ProcessorTimes({ 'the worker': ingest.pid, ...site.serverPids });
        const drain = () => drainRate(queue, JOBS, 1, times);
        return [...(await measureInTurn(drain, () => drainRate(idleQueue, JOBS, 1))), times] as const;
      }),
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
        reach: atLeast(worker / nothing, 2),
      },
      ...spent.figures('ingest-1', 'a job of one event'),
    ];
  },
};
