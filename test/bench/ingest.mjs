/**
 * How fast the ingest worker takes events, beside what limits it: the queue alone (a worker that does nothing) and the
 * database alone (the same rows, encoded beforehand, inserted by a bare client).
 *
 *   npm run bench:ingest -- [--rounds 5] [--jobs 20000]
 *
 * Everything runs in processes of its own on this machine; enqueueing is not counted. The clock of a round runs from
 * the first job taken to the last one acknowledged.
 */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { cpus, totalmem } from 'node:os';
import { setTimeout as delay } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { costOf, DEFAULT_PRICE_BOOK, parseUsageEvent } from '@meterline/catalog';
import { startLocalStack } from '@meterline/local-stack';
import { createWarehouse, insertUsageEvents, migrate } from '@meterline/warehouse';
import { Queue } from 'bullmq';

const CONCURRENCY = 500;
const BATCH_ROWS = 20_000;
const BULK = 1_000;

const { values: options } = parseArgs({
  options: { rounds: { type: 'string', default: '5' }, jobs: { type: 'string', default: '20000' } },
});
const rounds = Number(options.rounds);
const singleJobs = Number(options.jobs);

const ingestMain = fileURLToPath(new URL('../../services/ingest/dist/main.js', import.meta.url));
const idleMain = fileURLToPath(new URL('./idle-worker.mjs', import.meta.url));

let serial = 0;

function usageEvent() {
  serial += 1;
  return {
    eventId: `0190c5e4-7b1a-7def-8abc-${serial.toString(16).padStart(12, '0')}`,
    accountId: `account-${serial % 100}`,
    workspace: `workspace-${serial % 7}`,
    resourceType: 'agent',
    resourceName: `agent-${serial % 500}`,
    billingDimension: 'agent_compute_runtime_gbs',
    usage: ((serial * 1.37) % 5000).toFixed(4),
    timestamp: new Date(Date.UTC(2025, 9, 1) + (serial % 2_592_000) * 1000).toISOString(),
  };
}

async function fill(queue, jobs, eventsPerJob) {
  for (let done = 0; done < jobs; done += BULK) {
    const bulk = Array.from({ length: Math.min(BULK, jobs - done) }, () => ({
      name: 'bench',
      data: eventsPerJob === 1 ? usageEvent() : { events: Array.from({ length: eventsPerJob }, usageEvent) },
    }));
    await queue.addBulk(bulk);
  }
}

/** Jobs per second of a worker process, over jobs that wait already. */
async function workerRate(queue, jobs, start) {
  const worker = start();
  let firstTaken;
  for (;;) {
    const { waiting = 0, active = 0 } = await queue.getJobCounts('waiting', 'active');
    if (waiting < jobs) firstTaken ??= performance.now();
    if (waiting + active === 0) break;
    await delay(20);
  }
  const seconds = (performance.now() - firstTaken) / 1000;
  worker.kill('SIGTERM');
  await once(worker, 'exit');
  return jobs / seconds;
}

async function insertRate(warehouse, rows) {
  const batches = [];
  for (let done = 0; done < rows; done += BATCH_ROWS) batches.push(pricedEvents(Math.min(BATCH_ROWS, rows - done)));
  const started = performance.now();
  for (const batch of batches) await insertUsageEvents(warehouse, batch);
  return rows / ((performance.now() - started) / 1000);
}

function pricedEvents(count) {
  return Array.from({ length: count }, () => {
    const event = parseUsageEvent(usageEvent(), Date.now()).value;
    const price = DEFAULT_PRICE_BOOK.priceAt(event.accountId, event.billingDimension, event.timestamp);
    return Object.assign(event, { cost: costOf(event.usage, price), priceRevision: 0, priceBook: 0 });
  });
}

function median(values) {
  return [...values].sort((a, b) => a - b)[values.length >> 1];
}

const stack = await startLocalStack();
const storage = {
  url: stack.clickhouse.url,
  user: 'default',
  password: '',
  database: 'bench',
  application: 'meterline-bench',
};
await migrate(storage);
const warehouse = createWarehouse(storage);
const queue = new Queue('usage-events', { connection: { url: stack.redis.url } });
const environment = {
  ...process.env,
  REDIS_URL: stack.redis.url,
  CLICKHOUSE_URL: storage.url,
  CLICKHOUSE_DATABASE: storage.database,
  INGEST_CONCURRENCY: String(CONCURRENCY),
  INGEST_BATCH_ROWS: String(BATCH_ROWS),
  LOG_LEVEL: 'warn',
};
const ingest = () =>
  spawn(process.execPath, [ingestMain], { env: environment, stdio: ['ignore', 'inherit', 'inherit'] });
const idle = () =>
  spawn(process.execPath, [idleMain, stack.redis.url, 'bull', String(CONCURRENCY)], { stdio: 'inherit' });

try {
  const batchJobs = Math.ceil((singleJobs * 10) / 500);
  const rates = { batches: [], insert: [], singles: [], idle: [] };
  for (let round = 0; round < rounds; round += 1) {
    await fill(queue, batchJobs, 500);
    rates.batches.push(500 * (await workerRate(queue, batchJobs, ingest)));
    rates.insert.push(await insertRate(warehouse, batchJobs * 500));
    await fill(queue, singleJobs, 1);
    rates.singles.push(await workerRate(queue, singleJobs, ingest));
    await fill(queue, singleJobs, 1);
    rates.idle.push(await workerRate(queue, singleJobs, idle));
  }
  const ratio = (a, b) => (median(a) / median(b)).toFixed(2);
  console.log(`${cpus().length} cores, ${Math.round(totalmem() / 2 ** 30)} GiB, median of ${rounds}`);
  console.table({
    'ingest, jobs of 500 events': {
      'per second': Math.round(median(rates.batches)),
      beside: ratio(rates.batches, rates.insert),
    },
    'bare insert of the same rows': { 'per second': Math.round(median(rates.insert)), beside: '1' },
    'ingest, jobs of 1 event': {
      'per second': Math.round(median(rates.singles)),
      beside: ratio(rates.singles, rates.idle),
    },
    'worker that does nothing': { 'per second': Math.round(median(rates.idle)), beside: '1' },
  });
} finally {
  await queue.close();
  await warehouse.close();
  await stack.stop();
}
