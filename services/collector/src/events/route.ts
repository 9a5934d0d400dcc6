/** POST /v0/events */
import { setTimeout as delay } from 'node:timers/promises';
import {
  ApiError,
  type Authenticate,
  applyVersion,
  type ByteBudget,
  ClientGone,
  errorBody,
  FairPermits,
  goneSignal,
  noteInLog,
  onResponseEnd,
  orUnavailable,
  type Principal,
  principalOf,
  QueryParameters,
  type RateLimiter,
  type Reservation,
  rawQuery,
  requestIdOf,
  requireSender,
  unavailable,
} from '@meterline/api';
import type { PriceBook } from '@meterline/catalog';
import type { Request, RequestHandler, Response } from 'express';
import { z } from 'zod';
import type { EventMetrics } from '../metrics.js';
import { type CheckedEvents, checkEvents, onlyAccount } from './check.js';
import { announcedBytes, decoderOf, formatOf, readBody, readEvents } from './formats.js';

interface SenderLimits {
  readonly rates: RateLimiter;
  readonly budget: ByteBudget;
}

export interface EventsRouteDependencies {
  readonly authenticate: Authenticate;
  /** Callers of all accounts have limits of their own, so that tenants and the platform take nothing from each other. */
  readonly limits: { readonly tenants: SenderLimits; readonly platform: SenderLimits };
  readonly book: PriceBook;
  readonly clock: () => Date;
  /** Resolves when the events are durable; `bytes` is the length of their text, about. */
  readonly store: (events: readonly object[], bytes: number) => Promise<void>;
  readonly metrics: EventMetrics;
}

/** The query parameters of the operation. */
export const EVENTS_PARAMETERS = {
  validate: z.enum(['only'], { error: 'must be only, or left out' }).meta({
    description: '`only`: the events are checked and answered with 200, and none is kept.',
  }),
};

/** Bodies that are decoded and checked at once: what they become is several times as large as they are. */
const CHECKED_AT_ONCE = { process: 4, account: 1, caller: 1 };

/** What the result of an event takes in memory: a rejected event may be three bytes. */
const RESULT_BYTES = 256;

/**
 * Crash order: the events are durable in the queue, then the client is told so. A crash before the response leaves events that
 * the client sends again, with the same ids: they count once.
 */
export function eventsRoute(dependencies: EventsRouteDependencies): RequestHandler {
  const { authenticate, book, clock, limits, metrics, store } = dependencies;
  const permits = new FairPermits(CHECKED_AT_ONCE);

  /** Works on one body of an account after the other, so that those of other accounts are not behind all of them. @throws ClientGone */
  async function inTurn<T>(principal: Principal, waiting: Reservation, work: () => Promise<T>) {
    const release = await permits.acquire(principal, waiting.signal);
    waiting.state = 'worked on';
    try {
      return await work();
    } finally {
      release();
    }
  }

  return async (request, response) => {
    try {
      await takeEvents(request, response);
    } catch (error) {
      if (error instanceof ApiError && error.code === 'too_many_bytes_in_flight') await pause(request, response);
      throw error;
    }
  };

  async function takeEvents(request: Request, response: Response): Promise<void> {
    const caller = await authenticate(request);
    applyVersion(request, response);
    const accounts = requireSender(caller);
    const isOfPlatform = accounts === 'all';
    const { budget, rates } = isOfPlatform ? limits.platform : limits.tenants;
    const principal = principalOf(caller, isOfPlatform ? [] : accounts);
    const account = onlyAccount(accounts);
    if (account !== undefined) noteInLog(request, { account });
    await rates.count(principal, response);
    const isTrial = parseQuery(rawQuery(request));
    const format = formatOf(request.headers);
    const decode = decoderOf(request.headers['content-encoding']);

    const reservation = budget.open(principal.account, announcedBytes(request));
    const responded = new Promise<void>((resolve) => onResponseEnd(request.socket, response, resolve));
    void responded.then(() => {
      if (reservation.state === 'waiting') reservation.end(new ClientGone());
    });
    try {
      const sent = await readBody(request, reservation);
      const { checked, bytes } = await inTurn(principal, reservation, async () => {
        const body = await decode(sent);
        reservation.resize(body.length);
        const events = readEvents(body, format, account, request.headers);
        const checked = await checkEvents(events, { accounts, book, now: clock().getTime() });
        reservation.resize(Math.max(body.length, checked.results.length * RESULT_BYTES));
        return { checked, bytes: body.length };
      });
      const { accepted } = checked;
      if (accepted.length > 0 && !isTrial) await orUnavailable(store(accepted, bytes), queueUnavailable);
      if (!isTrial) metrics.checked(checked);
      const status = isTrial ? 200 : accepted.length > 0 ? 202 : 400;
      const json = JSON.stringify(responseBody(checked, status === 400 ? requestIdOf(request) : undefined));
      reservation.become(json.length);
      // The events are durable: a client that does not read this is cut off when others need the room.
      reservation.state = 'responding';
      reservation.signal.addEventListener('abort', () => request.socket.destroy(), { once: true });
      response.status(status).type('json').send(json);
    } catch (error) {
      // Nothing of it is kept.
      reservation.release();
      throw error;
    } finally {
      // Write and response must be over: a client may go while its events are being written, and they are in memory until then.
      void responded.then(() => reservation.release());
    }
  }
}

const REFUSED_AFTER_MS = 1_000;

/** An account with too much in flight is told so a second later, and not read meanwhile: its next request would be refused as well. */
async function pause(request: Request, response: Response): Promise<void> {
  request.pause();
  await delay(REFUSED_AFTER_MS, undefined, { signal: goneSignal(response) }).catch(() => undefined);
  request.resume();
}

/** @returns whether nothing is to be kept */
function parseQuery(rawQuery: string): boolean {
  if (rawQuery === '') return false;
  const parameters = new QueryParameters(rawQuery, { names: Object.keys(EVENTS_PARAMETERS) });
  const validate = parameters.optional('validate', EVENTS_PARAMETERS.validate);
  if (!parameters.areValid) throw parameters.error();
  return validate === 'only';
}

/** @param requestId the id of a request of which no event was accepted: the response is an error then */
function responseBody({ accepted, results }: CheckedEvents, requestId: string | undefined) {
  return {
    ...(requestId !== undefined && errorBody(noEventAccepted(), requestId)),
    accepted: accepted.length,
    rejected: results.length - accepted.length,
    results,
  };
}

/** No event of the request can be accepted. The body has the results as well. */
export function noEventAccepted(): ApiError {
  const message = 'No event was accepted; results says for each what is wrong with it.';
  return new ApiError(400, 'no_event_accepted', message);
}

/** The error for events that are not accepted, or not known to be. */
export function queueUnavailable(cause?: unknown): ApiError {
  const message =
    'Events cannot be made durable at the moment; send the same ones again shortly, with the same ids: none counts twice.';
  return unavailable('queue_unavailable', message, cause);
}
