/** Rejects requests that never reach the application, because Node's HTTP parser cannot read them. */
import { randomUUID } from 'node:crypto';
import { STATUS_CODES } from 'node:http';
import { Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import { property } from '@meterline/catalog/plain';
import type { Logger } from 'pino';
import { ApiError, errorBody } from './errors.js';

/**
 * Limit of the request line and the headers together. It is twice the limit of a URL, so that the application itself can reject a URL that is
 * too long, with an error that says so.
 */
export const MAX_HEADER_BYTES = 48 * 1024;

/** After the service rejects a request, the client has this long to close its side of the connection. */
const LINGER_MS = 5_000;

/** Matches a request line with any method. Source: RFC 9112, section 3, and RFC 9110, section 5.6.2. */
const REQUEST_LINE = /^[!#$%&'*+\-.^_`|~0-9A-Za-z]+ \S+ HTTP\/1\.[01]\r?\n/;

/** Sends an error in the format of the application's errors, writes a log line, and closes the connection. */
export function rejectUnreadable(error: ApiError, socket: Duplex, log: Logger): void {
  const requestId = randomUUID();
  // After a CONNECT request, Node leaves the socket without an `error` listener, and an unhandled `error` event would end the process.
  socket.on('error', () => socket.destroy());
  socket.end(rawResponse(error, requestId));
  if (socket instanceof Socket) socket.setTimeout(LINGER_MS, () => socket.destroy());
  const { status, code } = error;
  const remoteAddress = socket instanceof Socket ? socket.remoteAddress : undefined;
  log.info({ event: 'request_unreadable', requestId, status, code, remoteAddress }, error.message);
}

/** Converts an error of Node's HTTP parser. Node adds `code` and `rawPacket` to it. Source: Node.js documentation, "Event: 'clientError'". */
export function parserError(thrown: unknown): ApiError {
  const code = property(thrown, 'code');
  const rawPacket = property(thrown, 'rawPacket');
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
  if (code === 'HPE_INVALID_METHOD' && rawPacket instanceof Buffer && REQUEST_LINE.test(rawPacket.toString('latin1'))) {
    return new ApiError(501, 'method_unknown', 'The method is unknown; use GET, HEAD, POST, PATCH or DELETE.');
  }
  return new ApiError(400, 'malformed_request', 'The request is not well-formed HTTP/1.1.');
}

function rawResponse(error: ApiError, requestId: string): string {
  const body = JSON.stringify(errorBody(error, requestId));
  return [
    `HTTP/1.1 ${error.status} ${STATUS_CODES[error.status]}`,
    'Content-Type: application/json; charset=utf-8',
    `Content-Length: ${Buffer.byteLength(body)}`,
    'Cache-Control: private, no-store',
    `X-Request-Id: ${requestId}`,
    ...Object.entries(error.headers).map(([name, value]) => `${name}: ${value}`),
    'Connection: close',
    '',
    body,
  ].join('\r\n');
}
