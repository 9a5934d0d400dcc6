/** Serves POST /v0/events. */
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
  /** Callers that send for all accounts (the platform) have limits of their own. So they and the tenants cannot slow each other down. */
  readonly limits: { readonly tenants: SenderLimits; readonly platform: SenderLimits };
  readonly book: PriceBook;
  readonly clock: () => Date;
  /** Resolves once the events are durable. `bytes` is the approximate length of the events as JSON. */
  readonly store: (events: readonly object[], bytes: number) => Promise<void>;
  readonly metrics: EventMetrics;
}

export const EVENTS_PARAMETERS = {
  validate: z.enum(['only'], { error: 'must be only, or left out' }).meta({
    description: '`only`: check the events, respond with 200 and keep nothing.',
  }),
};

/** Maximum number of bodies that are decoded and checked concurrently. Decoded events take several times the memory of a body. */
const CHECKED_AT_ONCE = { process: 4, account: 1, caller: 1 };

/** Approximate memory of one result. Results can exceed the body, because even a rejected event of three bytes has a result. */
const RESULT_BYTES = 256;

/**
 * Receives events.
 * Crash order: the response is sent after the events are durable in the queue. If the process crashes in between, the client sends the
 * events again with the same IDs, and Meterline counts them once.
 */
export function eventsRoute(dependencies: EventsRouteDependencies): RequestHandler {
  const { authenticate, book, clock, limits, metrics, store } = dependencies;
  const permits = new FairPermits(CHECKED_AT_ONCE);

  /** Checks one body per account at a time, so that one account does not delay the others. @throws ClientGone if the client disconnects */
  async function withPermit<T>(principal: Principal, reservation: Reservation, work: () => Promise<T>) {
    const release = await permits.acquire(principal, reservation.signal);
    reservation.state = 'in progress';
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
      const { checked, bytes } = await withPermit(principal, reservation, async () => {
        const body = await decode(sent);
        reservation.resize(body.length);
        const events = readEvents(body, format, account, request.headers);
        const checked = await checkEvents(events, { accounts, book, now: clock().getTime() });
        reservation.resize(Math.max(body.length, checked.results.length * RESULT_BYTES));
        return { checked, bytes: body.length };
      });
      const { accepted } = checked;
      if (accepted.length > 0 && !isTrial) await orUnavailable(store(accepted, bytes), queueUnavailable);
      if (!isTrial) {
        metrics.checked(checked);
        noteRejections(request, checked);
      }
      const status = isTrial ? 200 : accepted.length > 0 ? 202 : 400;
      const json = JSON.stringify(responseBody(checked, status === 400 ? requestIdOf(request) : undefined));
      reservation.become(json.length);
      // The events are durable now, so the byte budget may close the connection of a client that does not read the response.
      reservation.state = 'responding';
      reservation.signal.addEventListener('abort', () => request.socket.destroy(), { once: true });
      response.status(status).type('json').send(json);
    } catch (error) {
      reservation.release();
      throw error;
    } finally {
      // Release the bytes only after both the write and the response: until then the events stay in memory, even if the client disconnects.
      void responded.then(() => reservation.release());
    }
  }
}

const MAX_LOGGED_REASONS = 5;

function noteRejections(request: Request, { results, rejectedAccounts }: CheckedEvents): void {
  if (results.length === 0) return;
  const reasons = [...new Set(results.map(({ reason }) => reason))].slice(0, MAX_LOGGED_REASONS);
  const accounts = Array.from(rejectedAccounts, ([account, events]) => ({ account, events }));
  noteInLog(request, { rejected: { events: results.length, reasons, accounts } });
}

const DENIED_AFTER_MS = 1_000;

/** Delays the error for an account with too many bytes in flight, because its next request would fail as well. */
async function pause(request: Request, response: Response): Promise<void> {
  request.pause();
  await delay(DENIED_AFTER_MS, undefined, { signal: goneSignal(response) }).catch(() => undefined);
  request.resume();
}

function parseQuery(rawQuery: string): boolean {
  if (rawQuery === '') return false;
  const parameters = new QueryParameters(rawQuery, { names: Object.keys(EVENTS_PARAMETERS) });
  const validate = parameters.optional('validate', EVENTS_PARAMETERS.validate);
  if (!parameters.areValid) throw parameters.error();
  return validate === 'only';
}

/** @param requestId set if no event was accepted, which makes the response an error */
function responseBody({ accepted, results }: CheckedEvents, requestId: string | undefined) {
  return {
    ...(requestId !== undefined && errorBody(noEventAccepted(), requestId)),
    accepted: accepted.length,
    rejected: results.length,
    results,
  };
}

/** Returns the error for a request without any valid event. The response also contains the results of the events. */
export function noEventAccepted(): ApiError {
  const message =
    'No event was accepted. Each entry of results has the reason of one event: correct it and send the event again.';
  return new ApiError(400, 'no_event_accepted', message);
}

/** Returns the error for events that may or may not be durable. */
export function queueUnavailable(cause?: unknown): ApiError {
  const message =
    'Events cannot be made durable at the moment; send the same events again shortly, with the same IDs: no event counts twice.';
  return unavailable('queue_unavailable', message, cause);
}
