/**
 * GET /healthz: the process runs. GET /readyz: the process is not stopping, and its servers respond. The response of /readyz also lists what
 * works only partly.
 */
import { redisFailureKind } from '@meterline/service/access';
import { inTime } from '@meterline/service/waiting';
import type { RequestHandler } from 'express';
import { ApiError } from './errors.js';

export const healthRoute: RequestHandler = (_request, response) => {
  response.json({ status: 'ok' });
};

export interface ReadinessCheck {
  readonly server: string;
  /**
   * Resolves with a text if the server works only partly. Rejects if the server does not respond or returns an error, or with
   * {@link UnfitServer}.
   */
  readonly check: () => Promise<unknown>;
  /** What fails while the server is down, if the service is still ready then. Undefined: the service is not ready without the server. */
  readonly whileDown?: string | undefined;
}

/** The server responds but cannot be used. The message follows the name of the server, and says how to fix the problem. */
class UnfitServer extends Error {
  override readonly name: string = 'UnfitServer';
}

/** @param problem what is wrong with the server, or undefined @param cause for the log @throws UnfitServer if there is a problem */
export function requireFit(problem: string | undefined, cause?: unknown): void {
  if (problem !== undefined) throw new UnfitServer(problem, { cause });
}

const CHECK_TIMEOUT_MS = 3_000;

export function readinessRoute(isStopping: () => boolean, checks: readonly ReadinessCheck[]): RequestHandler {
  return async (_request, response) => {
    if (isStopping()) throw new ApiError(503, 'not_ready', 'This process is stopping; send requests to another one.');
    const outcomes = await Promise.all(checks.map(readinessOf));
    const problems = outcomes.flatMap(({ problem }) => problem ?? []);
    if (problems.length > 0) throw notReady(problems);
    const degraded = outcomes.flatMap(({ limitation }) => limitation ?? []);
    response.json({ status: 'ready', ...(degraded.length > 0 && { degraded }) });
  };
}

interface Problem {
  readonly server: string;
  readonly cause: unknown;
}

interface Readiness {
  readonly problem?: Problem;
  readonly limitation?: { readonly server: string; readonly message: string };
}

async function readinessOf({ server, check, whileDown }: ReadinessCheck): Promise<Readiness> {
  try {
    const message = await inTime(server, check(), CHECK_TIMEOUT_MS);
    return typeof message === 'string' ? { limitation: { server, message } } : {};
  } catch (cause) {
    if (whileDown === undefined || responseProblem(cause) !== undefined) return { problem: { server, cause } };
    return { limitation: { server, message: `${DOWN}: ${whileDown}` } };
  }
}

const DOWN = 'does not respond';

/** Returns why a responding server cannot be used, as text to follow its name. Undefined if the server does not respond. */
function responseProblem(cause: unknown): string | undefined {
  if (!(cause instanceof Error)) return undefined;
  const text = cause.message.replace(/[\s.]+$/, '');
  if (cause instanceof UnfitServer) return text;
  return redisFailureKind(cause) === 'rejected' ? `returned an error: ${text}` : undefined;
}

export function notReady(problems: readonly Problem[]): ApiError {
  const details = problems.map(({ server, cause }) => ({ server, message: responseProblem(cause) ?? DOWN }));
  const message = `${details.map(({ server, message: problem }) => `${server} ${problem}`).join('; ')}.`;
  return new ApiError(503, 'not_ready', message, {
    details,
    cause: new AggregateError(problems.map(({ cause }) => cause)),
  });
}
