/** What a worker does with its jobs when it gives up on a ClickHouse that is away, on a real Redis. */
import { randomUUID } from 'node:crypto';
import { expect, it } from '@jest/globals';
import { AnswerStamps } from '@meterline/access';
import { DEFAULT_PRICE_BOOK, QUEUE_NAME } from '@meterline/catalog';
import { createRegistry } from '@meterline/service/metrics';
import { createWarehouse } from '@meterline/warehouse';
import { trace } from '@opentelemetry/api';
import { Queue } from 'bullmq';
import type { Redis } from 'ioredis';
import { pino } from 'pino';
import { until } from '../../../test/queue-stage.js';
import { SANDBOX_EVENT } from '../../../test/sandbox-event.js';
import { testRedisUrl, uniquePrefix } from '../../../test/stack.js';
import { Budget } from './budget.js';
import { EventStore } from './event-store.js';
import { Pricer } from './intake.js';
import { Lanes } from './lanes.js';
import { createIngestMetrics } from './metrics.js';
import { QueueConnection } from './queue-connection.js';
import { ShardLanes } from './shard-lanes.js';
import { UsageWorker } from './usage-worker.js';

const JOBS = 300;
/** Nothing listens there. */
const NOBODY = { url: 'http://127.0.0.1:1', user: 'default', password: '', database: 'none', application: 'test' };

it('jobs that cannot be stored before a shutdown go back into the queue without being read once more', async () => {
  const url = testRedisUrl();
  const prefix = uniquePrefix();
  const queue = new Queue(QUEUE_NAME, { connection: { url }, prefix });
  const timestamp = new Date().toISOString();
  const events = Array.from({ length: JOBS }, () => ({ ...SANDBOX_EVENT, eventId: randomUUID(), timestamp }));
  await queue.addBulk(events.map((data) => ({ name: 'usage', data })));

  const connection = new QueueConnection({ url, knowsScriptFlags: true, readsUsageJobs: true });
  let reads = 0;
  const send = connection.redis.sendCommand.bind(connection.redis);
  connection.redis.sendCommand = (...args: Parameters<Redis['sendCommand']>) => {
    if (args[0].name === 'hget') reads += 1;
    return send(...args);
  };
  const warehouse = createWarehouse(NOBODY);
  const givesUp = new AbortController();
  const log = pino({ level: 'silent' });
  const metrics = createIngestMetrics(createRegistry('ingest'));
  const stamps = new AnswerStamps(connection.redis, prefix);
  const writing = { warehouse, stamps, writer: randomUUID(), metrics, tracer: trace.getTracer('test') };
  const store = new EventStore({ ...writing, log, signal: givesUp.signal });
  const rows = { maxRows: 65_000, flushMs: 100, maxIntakes: () => JOBS };
  const current = new Lanes({ ...rows, sealDelayMs: 300_000, store: (batch) => store.store(batch) });
  const worker = new UsageWorker({
    ...{ connection, prefix, shard: 0, takesMany: true, telemetry: undefined, metrics, log },
    concurrency: () => 2 * JOBS,
    maxBytesInWork: () => 2 ** 25,
    onUnknownScripts: () => undefined,
    oversized: new Budget(() => 1),
    lanes: new ShardLanes({ lanes: [current], indexOf: () => 0, isAway: () => store.isClickHouseAway }),
    keepPayloadPart: (part) => store.keepPayloadPart(part),
    pricer: new Pricer(DEFAULT_PRICE_BOOK),
    closedBefore: () => 0,
    givesUp: givesUp.signal,
  });
  worker.run();
  await until(async () => store.isClickHouseAway && (await queue.getActiveCount()) === JOBS);
  reads = 0;
  givesUp.abort();
  await worker.close();
  expect(await queue.getJobCounts('waiting', 'active')).toEqual({ waiting: JOBS, active: 0 });
  expect(reads).toBe(0);
  await queue.obliterate({ force: true });
  await queue.close();
  await warehouse.close();
});
