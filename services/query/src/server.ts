/** The API on a port: limits of the HTTP layer, its errors, and how it ends. */
import { randomUUID } from 'node:crypto';
import { createServer, type RequestListener, type ServerResponse, STATUS_CODES } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { Duplex } from 'node:stream';
import { z } from 'zod';
import { ApiError, errorBody } from './http/errors.js';

/** Request line and headers together; so a URL that is only somewhat too long still gets its own error. */
const MAX_HEADER_BYTES = 32 * 1024;
/** Longer than the 60 s of usual load balancers, which would otherwise meet connections that are just being closed. */
const KEEP_ALIVE_MS = 65_000;
const REQUEST_TIMEOUT_MS = 30_000;

export interface RunningServer {
  /** The one chosen by the system when 0 was asked for. */
  readonly port: number;
  /** Accepts no more connections and resolves once all requests are answered, by force after the deadline. */
  close(deadlineMs: number): Promise<void>;
}

/** @throws the system's error, such as EADDRINUSE */
export async function startServer(app: RequestListener, port: number): Promise<RunningServer> {
  const server = createServer(
    {
      maxHeaderSize: MAX_HEADER_BYTES,
      keepAliveTimeout: KEEP_ALIVE_MS,
      requestTimeout: REQUEST_TIMEOUT_MS,
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
  server.on('clientError', (error, socket) => {
    // Half an answer is on its way: anything written now would be read as a part of it.
    if (!socket.writable || unanswered.get(socket)?.headersSent) socket.destroy();
    else socket.end(rawAnswer(describeClientError(error)));
  });

  await new Promise<void>((resolve, reject) => {
    server.once('error', reject);
    server.listen(port, resolve);
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

const systemError = z.object({ code: z.string() });

/** What Node's parser could not read never becomes a request. Source: Node documentation, "clientError". */
function describeClientError(error: unknown): ApiError {
  const code = systemError.safeParse(error).data?.code;
  if (code === 'HPE_HEADER_OVERFLOW') {
    return new ApiError(
      431,
      'headers_too_large',
      `The request line and headers are over ${MAX_HEADER_BYTES} bytes; shorten them.`,
    );
  }
  if (code === 'ERR_HTTP_REQUEST_TIMEOUT') {
    return new ApiError(408, 'request_timeout', 'The request did not arrive in time; send it again.');
  }
  return new ApiError(400, 'malformed_request', 'The request is not well-formed HTTP/1.1.');
}

function rawAnswer(error: ApiError): string {
  const requestId = randomUUID();
  const body = JSON.stringify(errorBody(error, requestId));
  return [
    `HTTP/1.1 ${error.status} ${STATUS_CODES[error.status]}`,
    'Content-Type: application/json; charset=utf-8',
    `Content-Length: ${Buffer.byteLength(body)}`,
    'Cache-Control: private, no-store',
    `X-Request-Id: ${requestId}`,
    'Connection: close',
    '',
    body,
  ].join('\r\n');
}

function portOf(address: AddressInfo | string | null): number {
  if (address === null || typeof address === 'string') throw new TypeError('the server has no port');
  return address.port;
}
