/**
 * A route that is answered on Node's HTTP alone, for an operation whose rate matters: Express takes three times as long for a
 * request as Node does, whatever its middleware (docs/decisions/0027). What every request gets (its log line, metric, span,
 * id and headers) it gets here from the same functions. A request that fails or is unusual goes on to Express, so the
 * application needs the same route, with the same handler.
 */
import type { IncomingMessage, RequestListener, ServerResponse } from 'node:http';
import type { Express } from 'express';
import type { ApplicationOptions } from './application.js';
import { baseHeaders, type Observation, watchersOf } from './http/every-request.js';
import { noteInLog, noteRoute, requestIdOf } from './http/request-observation.js';

/** @throws what the application answers as an error */
export type AccountHandler = (request: IncomingMessage, response: ServerResponse, account: string) => Promise<void>;

export interface DirectRoute {
  readonly method: string;
  /** Of a target that `checkRequestTarget` has nothing to say about; its group is the account, which needs no decoding. */
  readonly target: RegExp;
  /** As the application names it. */
  readonly route: string;
  readonly handle: AccountHandler;
  /** What else must hold of a request. */
  readonly isUsual?: (request: IncomingMessage) => boolean;
}

/** What a request failed with before the application saw it. */
const failures = new WeakMap<IncomingMessage, unknown>();

/** To be the application's first handler: Express then goes straight to its error handler. */
export function passFailuresOn(
  request: IncomingMessage,
  _response: ServerResponse,
  next: (error?: unknown) => void,
): void {
  next(failures.get(request));
}

export function withDirectRoute(
  app: Express,
  options: Observation & Pick<ApplicationOptions, 'corsOrigins'>,
  direct: DirectRoute,
): RequestListener {
  const watchers = watchersOf(options);
  const headers = baseHeaders(options.corsOrigins);
  const { handle, isUsual = () => true, method, route, target } = direct;
  return (request, response) => {
    const account = request.method === method ? target.exec(request.url ?? '')?.[1] : undefined;
    if (account === undefined || isUnusual(request) || !isUsual(request)) {
      app(request, response);
      return;
    }
    const answer = async () => {
      noteRoute(request, route);
      noteInLog(request, { account });
      response.setHeaders(headers).setHeader('X-Request-Id', requestIdOf(request));
      try {
        await handle(request, response, account);
      } catch (error) {
        failures.set(request, error);
        app(request, response);
      }
    };
    const first = watchers.reduceRight<() => void>((next, watch) => () => watch(request, response, next), answer);
    first();
  };
}

/** What the checks of the application may refuse, what a browser asks of another origin, and a GET with a body. */
function isUnusual({ headers, headersDistinct, method }: IncomingMessage): boolean {
  const { expect, origin } = headers;
  if (method === 'GET' && (headers['content-length'] ?? headers['transfer-encoding']) !== undefined) return true;
  return origin !== undefined || expect !== undefined || headersDistinct['host']?.length !== 1;
}
