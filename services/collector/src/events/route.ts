/** POST /v0/accounts/{accountId}/events */
import type { IncomingMessage, ServerResponse } from 'node:http';
import {
  type AccountHandler,
  ApiError,
  type Authenticate,
  applyVersion,
  errorBody,
  onAnswerEnd,
  orUnavailable,
  QueryParameters,
  type RateGate,
  rawQuery,
  requestIdOf,
  requireEmitter,
  unavailable,
} from '@meterline/api';
import type { PriceBook } from '@meterline/catalog';
import { z } from 'zod';
import type { BytesUnderWay, Holding } from '../bytes-under-way.js';
import type { EventMetrics } from '../metrics.js';
import type { JobEvents } from './check.js';
import { encodingOf } from './decoding.js';
import { formatOf } from './formats.js';
import { readAndCheck } from './read-and-check.js';
import type { Results } from './results.js';
import { UsualEvents } from './usual-events.js';

export interface EventsRouteDependencies {
  readonly authenticate: Authenticate;
  readonly gate: RateGate;
  readonly bytes: BytesUnderWay;
  readonly book: PriceBook;
  readonly clock: () => Date;
  /** Resolves when the events are durable; `bytes` is the length of their text, about. */
  readonly store: (events: JobEvents, bytes: number) => Promise<void>;
  readonly metrics: EventMetrics;
}

/** The query parameters of the operation. */
export const EVENTS_PARAMETERS = {
  validate: z.enum(['only'], { error: 'must be only, or left out' }).meta({
    description: '`only`: the events are checked and answered with 200, and none is kept.',
  }),
};

/**
 * Crash order: the events are durable in the queue, then the client is told so. A crash before the answer leaves events that
 * the client sends again, with the same ids: they count once.
 */
export function eventsRoute(dependencies: EventsRouteDependencies): AccountHandler {
  const { authenticate, book, bytes, clock, gate, metrics, store } = dependencies;
  const rules = { book, clock, usual: new UsualEvents(book) };

  return async (request, response, account) => {
    const caller = await authenticate(request);
    applyVersion(request, response);
    requireEmitter(caller, account);
    await gate.pass({ account, caller: caller.id }, response);
    const isTrial = parseQuery(rawQuery(request));
    const format = formatOf(request.headers);
    const sent = { account, format, encoding: encodingOf(request.headers['content-encoding']) };

    const holding = bytes.open(account);
    const answered = new Promise<void>((resolve) => onAnswerEnd(request.socket, response, resolve));
    try {
      const { checked, bytes: size } = await readAndCheck(request, holding, sent, rules);
      const { accepted } = checked;
      if (accepted.count > 0 && !isTrial) await orUnavailable(store(accepted, size), queueUnavailable);
      metrics.checked(checked, isTrial);
      const status = isTrial ? 200 : accepted.count > 0 ? 202 : 400;
      sendAnswer(request, response, holding, status, checked.results);
    } finally {
      // Both must be over: a client may go while its events are being written, and they are in memory until they are.
      void answered.then(() => holding.release());
    }
  };
}

/** @returns whether nothing is to be kept */
function parseQuery(rawQuery: string): boolean {
  if (rawQuery === '') return false;
  const parameters = new QueryParameters(rawQuery, { names: Object.keys(EVENTS_PARAMETERS) });
  const validate = parameters.optional('validate', EVENTS_PARAMETERS.validate);
  if (!parameters.areValid) throw parameters.refusal();
  return validate === 'only';
}

/** Longer ones are not copied once more. */
const ONE_PIECE_BYTES = 16 * 1024;

function sendAnswer(
  request: IncomingMessage,
  response: ServerResponse,
  holding: Holding,
  status: 200 | 202 | 400,
  results: Results,
): void {
  const error = status === 400 ? errorBody(noEventAccepted(), requestIdOf(request)) : undefined;
  const json = results.answer(error);
  holding.become(json.length);
  response.statusCode = status;
  response.setHeader('Content-Type', 'application/json; charset=utf-8').setHeader('Content-Length', json.length);
  // As a text it goes to the system in one piece with the headers: a character for each byte, and a byte for each character.
  if (json.length <= ONE_PIECE_BYTES) response.end(json.toString('latin1'), 'latin1');
  else response.end(json);
}

/** No event of the request can be accepted. The body has the results as well. */
function noEventAccepted(): ApiError {
  const message = 'No event was accepted; results says for each what is wrong with it.';
  return new ApiError(400, 'no_event_accepted', message);
}

/** Not accepted, or not known to be. */
function queueUnavailable(cause: unknown): ApiError {
  const message =
    'Events cannot be made durable at the moment; send the same ones again shortly, with the same ids: none counts twice.';
  return unavailable('queue_unavailable', message, cause);
}
