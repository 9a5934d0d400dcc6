/** Clients that do not read their answers: a limit on the time for sending one, and on the bytes of all that are not sent yet. */
import type { IncomingMessage, Server, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import { callerKey, type Party } from '../admission/party.js';
import { tooManyUnreadAnswers, tooManyUnsentBytes } from './errors.js';

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
    onAnswerEnd(socket, response, () => unsent.delete(response));
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
const SHARE_OF_ONE_CALLER = 1 / 4;

/**
 * A bound on the answers in memory that are computed and not sent yet, in all and of one caller: a caller that asks for large
 * answers and does not read them must neither fill the memory nor take all of the room.
 */
export class UnsentBytes {
  readonly #most: number;
  readonly #ofCallers = new Map<string, number>();
  #total = 0;

  /** @param most bytes in all, as JSON before its compression */
  constructor(most: number) {
    this.#most = most;
  }

  /** Bytes that are under way at the moment. */
  get total(): number {
    return this.#total;
  }

  /**
   * To be called before an answer is computed, because it could not be sent.
   * @throws ApiError `too_many_unread_answers`, `too_many_unsent_bytes`
   */
  requireRoom(party: Party, bytes = 0): void {
    const mine = this.#ofCallers.get(callerKey(party)) ?? 0;
    // One answer alone always has room.
    if (mine > 0 && mine + bytes >= this.#most * SHARE_OF_ONE_CALLER) throw tooManyUnreadAnswers(mine);
    if (this.#total > 0 && this.#total + bytes >= this.#most) throw tooManyUnsentBytes();
  }

  /** Counts the bytes of an answer until it is sent or its connection is gone. @throws as {@link requireRoom} */
  hold(request: IncomingMessage, response: ServerResponse, party: Party, bytes: number): void {
    this.requireRoom(party, bytes);
    const caller = callerKey(party);
    this.#add(caller, bytes);
    onAnswerEnd(request.socket, response, () => this.#add(caller, -bytes));
  }

  /** Sends JSON and counts it so. @throws as {@link requireRoom} */
  send(request: IncomingMessage, response: ServerResponse, party: Party, json: Buffer): void {
    this.hold(request, response, party, json.length);
    sendJson(response, json);
  }

  #add(caller: string, bytes: number): void {
    this.#total += bytes;
    const mine = (this.#ofCallers.get(caller) ?? 0) + bytes;
    if (mine > 0) this.#ofCallers.set(caller, mine);
    else this.#ofCallers.delete(caller);
  }
}

/** @param body JSON, in the encoding that the header says */
export function sendJson(response: ServerResponse, body: Buffer): void {
  response.setHeader('Content-Type', 'application/json; charset=utf-8').setHeader('Content-Length', body.length);
  response.end(body);
}

/** What is to be called when a connection closes. One listener for all: pipelined requests may be many. */
const pending = new WeakMap<Socket, Set<() => void>>();

/**
 * Calls back once, when the answer is sent or its connection is gone. A response alone does not say the latter if it waits
 * behind another one of the same connection (pipelining).
 */
export function onAnswerEnd(socket: Socket, response: ServerResponse, callback: () => void): void {
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
