/**
 * A port for operators: `/healthz` for the orchestrator that restarts the process, `/metrics` for Prometheus. It has no
 * authentication, so it must not be reachable from outside the network.
 */
import { once } from 'node:events';
import { createServer, type ServerResponse } from 'node:http';
import type { Logger } from 'pino';
import { DrainingServer } from './draining.js';
import { listenError } from './servers.js';

export interface Health {
  readonly healthy: boolean;
  /** The body of the answer. */
  readonly facts: object;
}

/** A page as text, and its media type. */
interface MetricsPage {
  readonly contentType: string;
  metrics(): Promise<string>;
}

export interface AdminPages {
  readonly health: () => Promise<Health>;
  readonly metrics: MetricsPage;
}

/** A scrape takes less; it would only delay the stop of the service. */
const CLOSE_DEADLINE_MS = 1_000;

export interface AdminServer {
  /** The port that the system chose, if 0 was asked for. */
  readonly port: number;
  /** Answers the requests under way, for a second at most. */
  close(): Promise<void>;
}

export interface AdminAddress {
  /** 0: any free one. */
  readonly port: number;
  /** Undefined: all addresses of this machine. */
  readonly host: string | undefined;
}

/** @throws StartError when the port is in use */
export async function openAdminServer(
  { port, host }: AdminAddress,
  pages: AdminPages,
  log: Logger,
): Promise<AdminServer> {
  const server = createServer((request, response) => {
    // Without the query string, which no log may show.
    const path = (request.url ?? '').split('?', 1)[0] ?? '';
    answer(path, pages, response).catch((err: unknown) => {
      log.error({ event: 'admin_request_failed', path, err }, 'a page of the admin port failed');
      if (response.headersSent) response.destroy();
      else response.writeHead(503).end();
    });
  });
  const draining = new DrainingServer(server);
  server.listen({ port, host });
  try {
    await once(server, 'listening');
  } catch (error) {
    throw listenError({ port, variable: 'ADMIN_PORT', host }, error);
  }
  const address = server.address();
  if (address === null || typeof address === 'string') throw new TypeError('the admin server has no port');
  return {
    port: address.port,
    close: () => draining.drain(CLOSE_DEADLINE_MS),
  };
}

async function answer(path: string, { health, metrics }: AdminPages, response: ServerResponse): Promise<void> {
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
