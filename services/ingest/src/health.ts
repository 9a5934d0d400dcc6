/** Whether the worker consumes: not whether it runs, but whether jobs that wait are being taken. */
import { once } from 'node:events';
import { createServer, type Server } from 'node:http';
import type { Logger } from 'pino';

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

/**
 * Answers `GET /healthz` on a port of its own: 200 while the worker consumes, 503 when it does not.
 * @throws the listening error, when the port is in use
 */
export async function serveHealth(port: number, read: () => Promise<Consumption>, log: Logger): Promise<Server> {
  const server = createServer((request, response) => {
    if (request.url !== '/healthz') {
      response.writeHead(404).end();
      return;
    }
    read().then(
      (consumption) => {
        response.writeHead(isConsuming(consumption, Date.now()) ? 200 : 503, { 'content-type': 'application/json' });
        response.end(JSON.stringify(consumption));
      },
      (error: unknown) => {
        log.error({ event: 'health_check_failed', err: error }, 'The health check could not ask the queue');
        response.writeHead(503).end();
      },
    );
  });
  server.listen(port);
  await once(server, 'listening');
  return server;
}
