/**
 * Serves the admin port: `/healthz` for the orchestrator that restarts the process, and `/metrics` for Prometheus. The port has no
 * authentication, so it must not be reachable from outside the network.
 */
import { createServer, type ServerResponse } from 'node:http';
import type { Logger } from 'pino';
import type { Registry } from 'prom-client';
import { DrainingServer } from './draining.js';

export interface Health {
  readonly healthy: boolean;
  readonly facts: object;
}

interface AdminPages {
  readonly health?: () => Promise<Health>;
  readonly metrics: Pick<Registry, 'contentType' | 'metrics'>;
}

/** Enough for any scrape of the metrics. A longer deadline would only delay the stop of the service. */
const CLOSE_DEADLINE_MS = 1_000;

export interface AdminServer {
  readonly port: number;
  close(): Promise<void>;
}

interface AdminAddress {
  readonly ADMIN_PORT?: number | undefined;
  readonly LISTEN_HOST?: string | undefined;
}

const alwaysHealthy = async (): Promise<Health> => ({ healthy: true, facts: { status: 'ok' } });

export async function openAdminServer(
  { ADMIN_PORT: port, LISTEN_HOST: host }: AdminAddress,
  { health = alwaysHealthy, metrics }: AdminPages,
  log: Logger,
): Promise<AdminServer | undefined> {
  if (port === undefined) return undefined;
  const server = createServer((request, response) => {
    // The query string is removed, because it must not be logged.
    const path = (request.url ?? '').split('?', 1)[0] ?? '';
    respond(path, { health, metrics }, response).catch((err: unknown) => {
      log.error({ event: 'admin_request_failed', path, err }, 'a page of the admin port failed');
      if (response.headersSent) response.destroy();
      else response.writeHead(503).end();
    });
  });
  const draining = new DrainingServer(server);
  return {
    port: await draining.listen(port, 'ADMIN_PORT', host),
    close: () => draining.drain(CLOSE_DEADLINE_MS),
  };
}

async function respond(
  path: string,
  { health, metrics }: Required<AdminPages>,
  response: ServerResponse,
): Promise<void> {
  switch (path) {
    case '/healthz': {
      const { healthy, facts } = await health();
      response.writeHead(healthy ? 200 : 503, { 'content-type': 'application/json' }).end(JSON.stringify(facts));
      return;
    }
    case '/metrics': {
      const page = await metrics.metrics();
      response.writeHead(200, { 'content-type': metrics.contentType }).end(page);
      return;
    }
    default:
      response.writeHead(404).end();
  }
}
