/** The API on a port: limits of the HTTP layer, and how it ends. */
import { createServer, type RequestListener, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { Duplex } from 'node:stream';
import type { Logger } from 'pino';
import { refuseUnreadable } from './http/unreadable-requests.js';

/** Request line and headers together; so a URL that is only somewhat too long still gets its own error. */
const MAX_HEADER_BYTES = 48 * 1024;
/** Longer than the 60 s of usual load balancers, which would otherwise meet connections that are just being closed. */
const KEEP_ALIVE_MS = 65_000;
const REQUEST_TIMEOUT_MS = 30_000;
/** How much later than that a slow request may be noticed. */
const TIMEOUT_CHECK_SHARE = 0.1;

export interface ServerOptions {
  /** 0: any free one. */
  readonly port: number;
  /** The address to listen on; undefined: all of this machine. */
  readonly host?: string | undefined;
  readonly log: Logger;
  /** How long a request may take to arrive. */
  readonly requestTimeoutMs?: number;
}

export interface RunningServer {
  /** The one chosen by the system when 0 was asked for. */
  readonly port: number;
  /** Accepts no more connections and resolves once all requests are answered, by force after the deadline. */
  close(deadlineMs: number): Promise<void>;
}

/** @throws the system's error, such as EADDRINUSE */
export async function startServer(app: RequestListener, options: ServerOptions): Promise<RunningServer> {
  const { port, host, log, requestTimeoutMs = REQUEST_TIMEOUT_MS } = options;
  const server = createServer(
    {
      maxHeaderSize: MAX_HEADER_BYTES,
      keepAliveTimeout: KEEP_ALIVE_MS,
      requestTimeout: requestTimeoutMs,
      connectionsCheckingInterval: requestTimeoutMs * TIMEOUT_CHECK_SHARE,
      // The application answers a missing Host itself, with a body.
      requireHostHeader: false,
    },
    app,
  );
  const unanswered = new Map<Duplex, ServerResponse>();
  server.on('request', ({ socket }, response) => {
    unanswered.set(socket, response);
    response.once('close', () => {
      if (unanswered.get(socket) === response) unanswered.delete(socket);
      // Once closing, a connection is of no use after the answer that it was kept for.
      if (!server.listening) setImmediate(() => server.closeIdleConnections());
    });
  });
  // Node would refuse it by itself, without a body; the application does it with one.
  server.on('checkExpectation', (request, response) => server.emit('request', request, response));
  server.on('clientError', (error, socket) => {
    // Half an answer is on its way: anything written now would be read as a part of it.
    if (!socket.writable || unanswered.get(socket)?.headersSent) socket.destroy();
    else refuseUnreadable(error, socket, MAX_HEADER_BYTES, log);
  });

  await new Promise<void>((resolve, reject) => {
    server.once('error', reject);
    server.listen({ port, host }, resolve);
  });
  return {
    port: portOf(server.address()),
    close: (deadlineMs) =>
      new Promise((resolve) => {
        const deadline = setTimeout(() => server.closeAllConnections(), deadlineMs);
        server.close(() => {
          clearTimeout(deadline);
          resolve();
        });
      }),
  };
}

function portOf(address: AddressInfo | string | null): number {
  if (address === null || typeof address === 'string') throw new TypeError('the server has no port');
  return address.port;
}
