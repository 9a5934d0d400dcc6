/** The worker as operators see it from outside: `/healthz` and `/metrics`. */
import { type AdminServer, type Health, openAdminServer, startError } from '@meterline/service';
import { outageGauge } from '@meterline/service/metrics';
import type { Logger } from 'pino';
import type { Registry } from 'prom-client';
import type { Batcher } from './batcher.js';
import { isConsuming } from './consumption.js';
import type { Env } from './env.js';
import type { EventStore } from './event-store.js';
import { QueueReader } from './queue-reader.js';
import type { UsageWorker } from './usage-worker.js';
import { registerWorkerGauges } from './worker-gauges.js';

export interface Watched {
  readonly registry: Registry;
  readonly worker: UsageWorker;
  readonly store: EventStore;
  readonly batcher: Batcher;
}

/** @throws StartError when the port of the environment is in use, or Redis is gone again */
export async function openAdminPort(
  env: Env,
  { registry, worker, store, batcher }: Watched,
  log: Logger,
): Promise<AdminServer | undefined> {
  if (env.ADMIN_PORT === undefined) return undefined;
  const queue = await openQueueReader(env);
  const consumption = () => ({ lastProgressAt: worker.lastProgressAt, outage: store.isWaiting || worker.isWaiting });
  registerWorkerGauges(registry, {
    readQueue: () => queue.read(),
    consumption,
    waitingRows: () => batcher.pendingRows,
    clock: Date.now,
  });
  outageGauge(registry, {
    ClickHouse: async () => !store.isWaiting,
    // A Redis that hangs keeps the worker's connections open, so the worker cannot tell.
    Redis: async () => !worker.isWaiting && queue.read().then(() => true),
  });
  const health = async (): Promise<Health> => {
    // Without Redis there is no telling.
    const facts = { ...consumption(), waitingJobs: worker.isWaiting ? 0 : (await queue.read()).waiting };
    return { healthy: isConsuming(facts, Date.now()), facts };
  };
  const address = { port: env.ADMIN_PORT, host: env.LISTEN_HOST };
  const server = await openAdminServer(address, { health, metrics: registry }, log);
  return {
    port: server.port,
    close: async () => {
      await server.close();
      await queue.close();
    },
  };
}

async function openQueueReader(env: Env): Promise<QueueReader> {
  try {
    return await QueueReader.open(env.REDIS_URL, env.QUEUE_PREFIX);
  } catch (error) {
    throw startError('Redis does not answer any more', error);
  }
}
