/**
 * A port for operators: `/healthz` for the orchestrator that restarts the process, `/metrics` for Prometheus. It has no
 * authentication, so it must not be reachable from outside the network.
 */
import { createServer, type ServerResponse } from 'node:http';
import type { Logger } from 'pino';
import type { Registry } from 'prom-client';
import { DrainingServer } from './draining.js';

export interface Health {
  readonly healthy: boolean;
  /** The body of the response. */
  readonly facts: object;
}

interface AdminPages {
  /** Default: healthy while it answers. */
  readonly health?: () => Promise<Health>;
  readonly metrics: Pick<Registry, 'contentType' | 'metrics'>;
}

/** A scrape takes less; it would only delay the stop of the service. */
const CLOSE_DEADLINE_MS = 1_000;

export interface AdminServer {
  /** The port that the system chose, if 0 was asked for. */
  readonly port: number;
  /** Answers the requests under way, for a second at most. */
  close(): Promise<void>;
}

interface AdminAddress {
  /** Undefined: there is no such server. 0: any free port. */
  readonly ADMIN_PORT?: number | undefined;
  /** Undefined: all addresses of this machine. */
  readonly LISTEN_HOST?: string | undefined;
}

const alwaysHealthy = async (): Promise<Health> => ({ healthy: true, facts: { status: 'ok' } });

/** @throws StartError when the port is in use */
export async function openAdminServer(
  { ADMIN_PORT: port, LISTEN_HOST: host }: AdminAddress,
  { health = alwaysHealthy, metrics }: AdminPages,
  log: Logger,
): Promise<AdminServer | undefined> {
  if (port === undefined) return undefined;
  const server = createServer((request, response) => {
    // Without the query string, which no log may show.
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
