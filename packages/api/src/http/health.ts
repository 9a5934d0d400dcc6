/**
 * Serves the health checks. `GET /healthz` shows that the process runs. `GET /readyz` shows that the process is not stopping, and that the
 * servers it depends on respond, such as Redis. The response of `/readyz` also lists servers that work only in part.
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
   * Resolves with a description of the problem if the server works only in part. Rejects if the server does not respond or returns an error.
   * Rejects with {@link UnusableServerError} if the server responds but cannot be used.
   */
  readonly check: () => Promise<unknown>;
  /** What fails while the server is down. If undefined, the service needs the server, and is not ready while the server is down. */
  readonly whileDown?: string | undefined;
}

/** Thrown if a server responds but cannot be used. The message explains how to fix the problem, and is shown after the server's name. */
class UnusableServerError extends Error {
  override readonly name: string = 'UnusableServerError';
}

/** Throws UnusableServerError if there is a problem. The cause is not sent to the client, but logged. */
export function requireFit(problem: string | undefined, cause?: unknown): void {
  if (problem !== undefined) throw new UnusableServerError(problem, { cause });
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

/** Returns what is wrong with a server that responded. Messages show the result after the server's name. Returns undefined if it did not respond. */
function responseProblem(cause: unknown): string | undefined {
  if (!(cause instanceof Error)) return undefined;
  const text = cause.message.replace(/[\s.]+$/, '');
  if (cause instanceof UnusableServerError) return text;
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
