/**
 * The API on a port: the limits of the HTTP layer, answers to requests that cannot be read, clients that do not read their responses, and how
 * the server stops.
 */
import { randomUUID } from 'node:crypto';
import {
  createServer,
  type IncomingMessage,
  type RequestListener,
  type Server,
  type ServerResponse,
  STATUS_CODES,
} from 'node:http';
import { Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import { DrainingServer } from '@meterline/service/draining';
import type { Logger } from 'pino';
import { z } from 'zod';
import { ApiError, errorBody, methodRefused, tooMany, unavailable } from './http/errors.js';

/** Request line and headers together: above the limit on a URL, so that a URL that is a little too long gets its own error. */
const MAX_HEADER_BYTES = 48 * 1024;
/** Longer than the usual 60 s of load balancers, which would otherwise use connections that are just being closed. */
export const KEEP_ALIVE_MS = 65_000;
const REQUEST_TIMEOUT_MS = 30_000;
/** A response of 2 MB, the largest there is, at 35 kB/s; compressed, it is a tenth of that. */
const SEND_TIMEOUT_MS = 60_000;
/** How long a client whose bytes were refused may take to close its side of the connection. */
const LINGER_MS = 5_000;
/** How much later than that a slow request may be detected. */
const TIMEOUT_CHECK_SHARE = 0.1;

export interface ServerOptions {
  /** 0: any free one. */
  readonly port: number;
  /** The address to listen on; undefined: all of this machine. */
  readonly host?: string | undefined;
  readonly log: Logger;
  /** How long an idle connection is kept. */
  readonly keepAliveMs?: number;
  /** How long a request may take to arrive. */
  readonly requestTimeoutMs?: number;
  /** How long a client may take to read a response, whatever its size. */
  readonly sendTimeoutMs?: number;
}

export interface RunningServer {
  /** The one that the system chose, if 0 was given. */
  readonly port: number;
  /**
   * Resolves when all requests are answered and all answers sent, or after the deadline, which cuts them off.
   * @param acceptMs how long connections are still accepted; the deadline begins then
   */
  close(deadlineMs: number, acceptMs?: number): Promise<void>;
}

/** @throws StartError when the port is in use */
export async function startServer(app: RequestListener, options: ServerOptions): Promise<RunningServer> {
  const { port, host, log, requestTimeoutMs = REQUEST_TIMEOUT_MS, sendTimeoutMs = SEND_TIMEOUT_MS } = options;
  const server = createServer(
    {
      maxHeaderSize: MAX_HEADER_BYTES,
      keepAliveTimeout: options.keepAliveMs ?? KEEP_ALIVE_MS,
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
    });
  });
  const draining = new DrainingServer(server);
  cutSlowReaders(server, sendTimeoutMs);
  // Node would refuse an unknown expectation without a body; the application does it with one.
  server.on('checkExpectation', (request, response) => server.emit('request', request, response));
  // CONNECT asks a proxy for a tunnel (RFC 9110, section 9.3.6), and is no request to the application: Node would hang up without a word.
  const tunnelRefused = methodRefused('CONNECT', 'GET, HEAD, POST, PATCH, DELETE');
  server.on('connect', (_request, socket) => refuse(tunnelRefused, socket, log));
  server.on('clientError', (error, socket) => {
    // Anything written after half a response would be read as part of it.
    if (!socket.writable || unanswered.get(socket)?.headersSent) socket.destroy();
    else refuse(problemOf(error), socket, log);
  });

  return {
    port: await draining.listen(port, 'PORT', host),
    close: (deadlineMs, acceptMs = 0) => draining.drain(deadlineMs, acceptMs),
  };
}

/** The error of Node's parser: its code, and the bytes that it had read. Source: Node documentation, "clientError". */
const parserProblem = z.object({ code: z.string(), rawPacket: z.instanceof(Buffer).optional() });

/** A request line, whatever its method. Source: RFC 9112, section 3, and RFC 9110, section 5.6.2. */
const REQUEST_LINE = /^[!#$%&'*+\-.^_`|~0-9A-Za-z]+ \S+ HTTP\/1\.[01]\r?\n/;

/**
 * A request that Node's parser cannot read never reaches the application: it gets the same error body and log line as
 * others here, and the connection is closed.
 */
function refuse(error: ApiError, socket: Duplex, log: Logger): void {
  const requestId = randomUUID();
  // After CONNECT nobody else listens, and an error without a listener would end the process.
  socket.on('error', () => socket.destroy());
  socket.end(rawResponse(error, requestId));
  if (socket instanceof Socket) socket.setTimeout(LINGER_MS, () => socket.destroy());
  const { status, code } = error;
  const remoteAddress = socket instanceof Socket ? socket.remoteAddress : undefined;
  log.info({ event: 'request_unreadable', requestId, status, code, remoteAddress }, error.message);
}

function problemOf(thrown: unknown): ApiError {
  const { code, rawPacket } = parserProblem.safeParse(thrown).data ?? {};
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
  if (code === 'HPE_INVALID_METHOD' && rawPacket && REQUEST_LINE.test(rawPacket.toString('latin1'))) {
    return new ApiError(501, 'method_unknown', 'The method is not known here; use GET, HEAD, POST, PATCH or DELETE.');
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

/** How often answers are looked at, as a share of the limit. */
const CHECK_SHARE = 0.1;

/**
 * Cuts off connections whose answer has begun and is not sent within the limit. How much of it the client reads in between
 * does not matter: reading a byte now and then would hold it for ever.
 * @param limitMs exceeded by a tenth at most
 */
function cutSlowReaders(server: Server, limitMs: number): void {
  /** Answers that are not sent yet, and when their sending was first noticed. */
  const unsent = new Map<ServerResponse, number | undefined>();
  server.prependListener('request', ({ socket }: IncomingMessage, response: ServerResponse) => {
    unsent.set(response, undefined);
    onResponseEnd(socket, response, () => unsent.delete(response));
  });
  const check = () => {
    const now = performance.now();
    for (const [response, since] of unsent) {
      if (!response.headersSent) continue;
      if (since === undefined) unsent.set(response, now);
      else if (now - since >= limitMs) response.socket?.destroy();
    }
  };
  const timer = setInterval(check, limitMs * CHECK_SHARE);
  timer.unref();
  server.once('close', () => clearInterval(timer));
}

/** The share of the bound in all that one account may use. */
const ACCOUNT_SHARE = 1 / 4;

/**
 * The in-flight byte budget of responses: a bound on those in memory that are computed and not sent yet, in all and of one account. An
 * account whose clients ask for large responses and do not read them must neither fill the memory nor take all of the room.
 */
export class ResponseBudget {
  readonly #most: number;
  readonly #ofAccounts = new Map<string, number>();
  #total = 0;

  /** @param most bytes in all, as JSON before its compression */
  constructor(most: number) {
    this.#most = most;
  }

  /** Bytes that are in flight at the moment. */
  get total(): number {
    return this.#total;
  }

  /**
   * To be called before a response is computed, because it could not be sent.
   * @throws ApiError `too_many_unread_responses`, `server_busy`
   */
  requireRoom(account: string, bytes = 0): void {
    const ofAccount = this.#ofAccounts.get(account) ?? 0;
    // One response alone always has room.
    if (ofAccount > 0 && ofAccount + bytes >= this.#most * ACCOUNT_SHARE) {
      const message = `Clients of this account have not read ${ofAccount} bytes of earlier responses yet; read them first, or ask for fewer at once.`;
      throw tooMany('too_many_unread_responses', message);
    }
    if (this.#total > 0 && this.#total + bytes >= this.#most) {
      throw unavailable('server_busy', 'Too many responses are being sent at the moment; try again shortly.');
    }
  }

  /** Sends JSON, and counts it until it is sent or its connection is gone. @throws as {@link requireRoom} */
  send(request: IncomingMessage, response: ServerResponse, account: string, json: Buffer): void {
    this.requireRoom(account, json.length);
    this.#add(account, json.length);
    onResponseEnd(request.socket, response, () => this.#add(account, -json.length));
    response.setHeader('Content-Type', 'application/json; charset=utf-8').setHeader('Content-Length', json.length);
    response.end(json);
  }

  #add(account: string, bytes: number): void {
    this.#total += bytes;
    const ofAccount = (this.#ofAccounts.get(account) ?? 0) + bytes;
    if (ofAccount > 0) this.#ofAccounts.set(account, ofAccount);
    else this.#ofAccounts.delete(account);
  }
}

/** What is to be called when a connection closes. One listener for all: pipelined requests may be many. */
const pending = new WeakMap<Socket, Set<() => void>>();

/**
 * Calls back once, when the response is sent or its connection is gone. A response alone does not say the latter if it waits
 * behind another one of the same connection (pipelining).
 */
export function onResponseEnd(socket: Socket, response: ServerResponse, callback: () => void): void {
  const waiting = pending.get(socket) ?? listenTo(socket);
  const end = () => {
    if (waiting.delete(end)) callback();
  };
  waiting.add(end);
  response.once('close', end);
  if (socket.destroyed) end();
}

function listenTo(socket: Socket): Set<() => void> {
  const waiting = new Set<() => void>();
  pending.set(socket, waiting);
  socket.once('close', () => {
    for (const end of waiting) end();
  });
  return waiting;
}
