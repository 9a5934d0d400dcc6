/**
 * GET /healthz: the process runs. GET /readyz: it is not stopping, and the servers that it depends on answer too; and what one
 * of them cannot do although it does.
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
  /** Resolves with a text if the server answers and cannot do all of its work. Rejects when it does not answer, refuses, or with {@link UnfitServer}. */
  readonly check: () => Promise<unknown>;
  /** What fails while the server does not answer, if the service is ready all the same; undefined: it is not ready. */
  readonly whileAway?: string | undefined;
}

/** The server answers, and cannot be used all the same; the message follows its name and says how to fix it. */
class UnfitServer extends Error {
  override readonly name: string = 'UnfitServer';
}

/** @param problem what is wrong with the server; undefined: nothing. @param cause for the log @throws UnfitServer */
export function requireFit(problem: string | undefined, cause?: unknown): void {
  if (problem !== undefined) throw new UnfitServer(problem, { cause });
}

const CHECK_TIMEOUT_MS = 3_000;

export function readinessRoute(isStopping: () => boolean, checks: readonly ReadinessCheck[]): RequestHandler {
  return async (_request, response) => {
    if (isStopping()) throw new ApiError(503, 'not_ready', 'This process is stopping; ask another one.');
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

async function readinessOf({ server, check, whileAway }: ReadinessCheck): Promise<Readiness> {
  try {
    const message = await inTime(server, check(), CHECK_TIMEOUT_MS);
    return typeof message === 'string' ? { limitation: { server, message } } : {};
  } catch (cause) {
    if (whileAway === undefined || refusalOf(cause) !== undefined) return { problem: { server, cause } };
    return { limitation: { server, message: `does not answer: ${whileAway}` } };
  }
}

/** Why a server that answers cannot be used, as text to follow its name; undefined: it does not answer. */
function refusalOf(cause: unknown): string | undefined {
  if (!(cause instanceof Error)) return undefined;
  const text = cause.message.replace(/[\s.]+$/, '');
  if (cause instanceof UnfitServer) return text;
  return redisFailureKind(cause) === 'refused' ? `refuses: ${text}` : undefined;
}

export function notReady(problems: readonly Problem[]): ApiError {
  const details = problems.map(({ server, cause }) => ({ server, message: refusalOf(cause) ?? 'does not answer' }));
  const isAway = details.every(({ message }) => message === 'does not answer');
  const message = isAway
    ? `Not answering: ${details.map(({ server }) => server).join(', ')}.`
    : `${details.map(({ server, message: problem }) => `${server} ${problem}`).join('; ')}.`;
  return new ApiError(503, 'not_ready', message, {
    details,
    cause: new AggregateError(problems.map(({ cause }) => cause)),
  });
}
