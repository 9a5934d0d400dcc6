/** Runs an application on a port with the limits of the HTTP layer, and stops it without losing requests. */
import { createServer, type RequestListener, type ServerResponse } from 'node:http';
import type { Duplex } from 'node:stream';
import { DrainingServer } from '@meterline/service/draining';
import type { Logger } from 'pino';
import { disallowedMethod } from './http/errors.js';
import { cutSlowReaders } from './http/slow-readers.js';
import { MAX_HEADER_BYTES, parserError, rejectUnreadable } from './http/unreadable-requests.js';

/** Longer than the idle timeout of load balancers, usually 60 s. They could otherwise reuse a connection that the service is closing. */
export const KEEP_ALIVE_MS = 65_000;
const REQUEST_TIMEOUT_MS = 30_000;
/** Enough to send the largest response, which has 2 MB, at 35 kB/s. If the response is compressed, it has a tenth of that size. */
const SEND_TIMEOUT_MS = 60_000;
/** The interval between checks for slow requests, as a share of the timeout. */
const TIMEOUT_CHECK_SHARE = 0.1;

export interface ServerOptions {
  readonly port: number;
  /** The address to listen on. If undefined, the server listens on all addresses of this machine. */
  readonly host?: string | undefined;
  readonly log: Logger;
  readonly keepAliveMs?: number;
  readonly requestTimeoutMs?: number;
  /** The timeout for sending a response, regardless of its size. */
  readonly sendTimeoutMs?: number;
}

export interface RunningServer {
  readonly port: number;
  /** Stops accepting connections after `acceptMs`. Resolves when all responses are sent. After another `deadlineMs`, cuts off the rest. */
  close(deadlineMs: number, acceptMs?: number): Promise<void>;
}

export async function startServer(app: RequestListener, options: ServerOptions): Promise<RunningServer> {
  const { port, host, log, requestTimeoutMs = REQUEST_TIMEOUT_MS, sendTimeoutMs = SEND_TIMEOUT_MS } = options;
  const server = createServer(
    {
      maxHeaderSize: MAX_HEADER_BYTES,
      keepAliveTimeout: options.keepAliveMs ?? KEEP_ALIVE_MS,
      requestTimeout: requestTimeoutMs,
      connectionsCheckingInterval: requestTimeoutMs * TIMEOUT_CHECK_SHARE,
      // The application rejects a missing Host header itself, with an error message in the body.
      requireHostHeader: false,
    },
    app,
  );
  const current = new Map<Duplex, ServerResponse>();
  server.on('request', ({ socket }, response) => {
    current.set(socket, response);
    response.once('close', () => {
      if (current.get(socket) === response) current.delete(socket);
    });
  });
  const draining = new DrainingServer(server);
  cutSlowReaders(server, sendTimeoutMs);
  // Node would reject an unknown value of the header `Expect` with an empty body. Instead, the application sends an error with a message.
  server.on('checkExpectation', (request, response) => server.emit('request', request, response));
  // CONNECT requests a proxy tunnel (RFC 9110, section 9.3.6). By default, Node closes the connection without a response.
  const connectError = disallowedMethod('CONNECT', 'GET, HEAD, POST, PATCH, DELETE');
  server.on('connect', (_request, socket) => rejectUnreadable(connectError, socket, log));
  server.on('clientError', (error, socket) => {
    // If a response has already started, the client would take an error for a part of that response.
    if (!socket.writable || current.get(socket)?.headersSent) socket.destroy();
    else rejectUnreadable(parserError(error), socket, log);
  });

  return {
    port: await draining.listen(port, 'PORT', host),
    close: (deadlineMs, acceptMs = 0) => draining.drain(deadlineMs, acceptMs),
  };
}
