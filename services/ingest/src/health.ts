/** Whether the worker consumes: not whether it runs, but whether jobs that wait are being taken. */
import { once } from 'node:events';
import { createServer, type Server } from 'node:http';
import { QUEUE_NAME } from '@meterline/catalog';
import { listenError } from '@meterline/service';
import { Queue } from 'bullmq';
import type { Logger } from 'pino';
import type { Env } from './env.js';
import type { EventStore } from './event-store.js';
import type { UsageWorker } from './usage-worker.js';

/** Jobs may wait this long without any progress; an insert and its retries take less while ClickHouse is there. */
const STALE_MS = 60_000;

export interface Consumption {
  readonly waitingJobs: number;
  readonly lastProgressAt: number;
  /** ClickHouse or Redis is away: the worker waits for it on purpose, and a restart would not help. */
  readonly outage: boolean;
}

export function isConsuming({ waitingJobs, lastProgressAt, outage }: Consumption, now: number): boolean {
  return waitingJobs === 0 || outage || now - lastProgressAt < STALE_MS;
}

export interface HealthCheck {
  close(): Promise<void>;
}

/** @throws StartError when the port is in use */
export async function openHealthCheck(
  env: Env,
  worker: UsageWorker,
  store: EventStore,
  log: Logger,
): Promise<HealthCheck | undefined> {
  const port = env.ADMIN_PORT;
  if (port === undefined) return undefined;
  const queue = new Queue(QUEUE_NAME, { connection: { url: env.REDIS_URL }, prefix: env.QUEUE_PREFIX });
  // The worker's own connection tells of an outage.
  queue.on('error', () => undefined);
  const consumption = async () => ({
    // Without Redis the question would wait for it, and the health check with it.
    waitingJobs: worker.isWaiting ? 0 : await queue.getWaitingCount(),
    lastProgressAt: worker.lastProgressAt,
    outage: store.isWaiting || worker.isWaiting,
  });
  const server = createHealthServer(consumption, log).listen({ port, host: env.LISTEN_HOST });
  try {
    await once(server, 'listening');
  } catch (error) {
    throw listenError({ port, variable: 'ADMIN_PORT', host: env.LISTEN_HOST }, error);
  }
  return {
    close: async () => {
      server.close();
      await queue.close();
    },
  };
}

/** Answers `GET /healthz`: 200 while the worker consumes, 503 when it does not. */
function createHealthServer(read: () => Promise<Consumption>, log: Logger): Server {
  return createServer((request, response) => {
    if (request.url !== '/healthz') {
      response.writeHead(404).end();
      return;
    }
    read().then(
      (consumption) => {
        response.writeHead(isConsuming(consumption, Date.now()) ? 200 : 503, { 'content-type': 'application/json' });
        response.end(JSON.stringify(consumption));
      },
      (err: unknown) => {
        log.error({ event: 'health_check_failed', err }, 'the health check could not ask the queue');
        response.writeHead(503).end();
      },
    );
  });
}
