/** What Node's parser cannot read never becomes a request: it is answered, and logged, here. */
import { randomUUID } from 'node:crypto';
import { STATUS_CODES } from 'node:http';
import { Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import type { Logger } from 'pino';
import { z } from 'zod';
import { ApiError, errorBody } from './errors.js';

/** The parser stops with one of its codes, somewhere in what it has read. Source: Node documentation, "clientError". */
const parserFault = z.object({ code: z.string(), rawPacket: z.instanceof(Buffer).optional() });

/** A request line, whatever its method. Source: RFC 9112, section 3, and RFC 9110, section 5.6.2. */
const REQUEST_LINE = /^[!#$%&'*+\-.^_`|~0-9A-Za-z]+ \S+ HTTP\/1\.[01]\r?\n/;

/** Answers in the shape of every error, writes the one line that has its requestId, and closes the connection. */
export function refuseUnreadable(thrown: unknown, socket: Duplex, maxHeaderBytes: number, log: Logger): void {
  const error = describe(thrown, maxHeaderBytes);
  const requestId = randomUUID();
  socket.end(rawAnswer(error, requestId));
  const { status, word } = error;
  const remoteAddress = socket instanceof Socket ? socket.remoteAddress : undefined;
  log.info({ event: 'request_unreadable', requestId, status, code: word, remoteAddress }, error.message);
}

function describe(thrown: unknown, maxHeaderBytes: number): ApiError {
  const { code, rawPacket } = parserFault.safeParse(thrown).data ?? {};
  if (code === 'HPE_HEADER_OVERFLOW') {
    return new ApiError(
      431,
      'headers_too_large',
      `The request line and headers are over ${maxHeaderBytes} bytes; shorten them.`,
    );
  }
  if (code === 'ERR_HTTP_REQUEST_TIMEOUT') {
    return new ApiError(408, 'request_timeout', 'The request did not arrive in time; send it again.');
  }
  if (code === 'HPE_INVALID_METHOD' && rawPacket && REQUEST_LINE.test(rawPacket.toString('latin1'))) {
    return new ApiError(501, 'method_unknown', 'The method is not known here; use GET, HEAD or DELETE.');
  }
  return new ApiError(400, 'malformed_request', 'The request is not well-formed HTTP/1.1.');
}

function rawAnswer(error: ApiError, requestId: string): string {
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
