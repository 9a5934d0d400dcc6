/** Clients that do not read their answers: a limit on the time for sending one, and on the bytes of all that are not sent yet. */
import type { IncomingMessage, Server, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import { tooMany, unavailable } from './errors.js';

/** How often answers are looked at, as a share of the limit. */
const CHECK_SHARE = 0.1;

/**
 * Cuts off connections whose answer has begun and is not sent within the limit. How much of it the client reads in between
 * does not matter: reading a byte now and then would hold it for ever.
 * @param limitMs exceeded by a tenth at most
 */
export function cutSlowReaders(server: Server, limitMs: number): void {
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

/** Of the bound in all. */
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
   * @throws ApiError `too_many_unread_answers`, `server_busy`
   */
  requireRoom(account: string, bytes = 0): void {
    const ofAccount = this.#ofAccounts.get(account) ?? 0;
    // One response alone always has room.
    if (ofAccount > 0 && ofAccount + bytes >= this.#most * ACCOUNT_SHARE) {
      const message = `Clients of this account have not read ${ofAccount} bytes of earlier answers yet; read them first, or ask for fewer at once.`;
      throw tooMany('too_many_unread_answers', message);
    }
    if (this.#total > 0 && this.#total + bytes >= this.#most) {
      throw unavailable('server_busy', 'Too many answers are being sent at the moment; try again shortly.');
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
 * Calls back once, when the answer is sent or its connection is gone. A response alone does not say the latter if it waits
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
