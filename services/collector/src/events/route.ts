/** POST /v0/accounts/{accountId}/events */
import {
  type Authenticate,
  applyVersion,
  errorBody,
  goneSignal,
  onAnswerEnd,
  orUnavailable,
  QueryParameters,
  type RateGate,
  rawQuery,
  requestIdOf,
  requireEmitter,
} from '@meterline/api';
import type { PriceBook } from '@meterline/catalog';
import type { Request, RequestHandler, Response } from 'express';
import { z } from 'zod';
import type { BytesUnderWay, Holding } from '../bytes-under-way.js';
import type { EventMetrics } from '../metrics.js';
import { answerOf, noEventAccepted, queueUnavailable } from './answer.js';
import { readBody } from './body.js';
import { checkEvents } from './check.js';
import { decodeBody, encodingOf, textOf } from './decoding.js';
import { formatOf, readEvents } from './formats.js';

export interface EventsRouteDependencies {
  readonly authenticate: Authenticate;
  readonly gate: RateGate;
  readonly bytes: BytesUnderWay;
  readonly book: PriceBook;
  readonly clock: () => Date;
  /** Resolves when the events are durable; `bytes` is the length of their text, about. */
  readonly store: (events: readonly unknown[], bytes: number) => Promise<void>;
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
export function eventsRoute(dependencies: EventsRouteDependencies): RequestHandler<{ accountId: string }> {
  const { authenticate, book, bytes, clock, gate, metrics, store } = dependencies;
  return async (request, response) => {
    const { accountId } = request.params;
    const caller = await authenticate(request);
    applyVersion(request, response);
    requireEmitter(caller, accountId);
    await gate.pass({ account: accountId, caller: caller.id }, response, goneSignal(response));
    const isTrial = parseQuery(rawQuery(request));
    const format = formatOf(request.headers);
    const encoding = encodingOf(request.headers['content-encoding']);

    const holding = bytes.open(accountId);
    const answered = new Promise<void>((resolve) => onAnswerEnd(request.socket, response, resolve));
    try {
      const body = decodeBody(await readBody(request, holding), encoding);
      // Decoded, many small bodies can be more than there is room for: while Redis is slow they wait together.
      holding.resize(body.length);
      const found = readEvents(textOf(body), format, accountId, request.headers);
      const { accepted, results } = checkEvents(found, { account: accountId, book, now: clock().getTime() });
      if (accepted.length > 0 && !isTrial) {
        await orUnavailable(store(accepted, body.length), queueUnavailable);
      }
      metrics.checked(results, isTrial);
      sendAnswer(request, response, holding, isTrial ? 200 : accepted.length > 0 ? 202 : 400, answerOf(results));
    } finally {
      // Both must be over: a client may go while its events are being written, and they are in memory until they are.
      void answered.then(() => holding.release());
    }
  };
}

/** @returns whether nothing is to be kept */
function parseQuery(rawQuery: string): boolean {
  const parameters = new QueryParameters(rawQuery, { names: Object.keys(EVENTS_PARAMETERS) });
  const validate = parameters.optional('validate', EVENTS_PARAMETERS.validate);
  if (!parameters.areValid) throw parameters.refusal();
  return validate === 'only';
}

function sendAnswer(
  request: Request,
  response: Response,
  holding: Holding,
  status: 200 | 202 | 400,
  answer: ReturnType<typeof answerOf>,
): void {
  const error = status === 400 ? errorBody(noEventAccepted(), requestIdOf(request)) : undefined;
  const json = Buffer.from(JSON.stringify({ ...error, ...answer }));
  holding.become(json.length);
  response.status(status).type('json').send(json);
}
