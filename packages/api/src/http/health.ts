/**
 * GET /healthz: the process runs. GET /readyz: it is not stopping, and the servers that it depends on answer too; and what one
 * of them cannot do although it does.
 */
import { inTime } from '@meterline/service/waiting';
import type { RequestHandler } from 'express';
import { ApiError } from './errors.js';

export const healthRoute: RequestHandler = (_request, response) => {
  response.json({ status: 'ok' });
};

export interface ReadinessCheck {
  readonly server: string;
  /** Rejects when the server does not answer, or with {@link UnfitServer}. */
  readonly check: () => Promise<unknown>;
  /** What it cannot do although it answers; undefined: nothing. Never rejects. */
  readonly limit?: () => Promise<string | undefined>;
}

/** The server answers, and cannot be used all the same; the message follows its name and says how to fix it. */
export class UnfitServer extends Error {
  override readonly name: string = 'UnfitServer';
}

const CHECK_TIMEOUT_MS = 3_000;

export function readinessRoute(isStopping: () => boolean, checks: readonly ReadinessCheck[]): RequestHandler {
  return async (_request, response) => {
    if (isStopping()) throw new ApiError(503, 'not_ready', 'This process is stopping; ask another one.');
    const outcomes = await Promise.allSettled(
      checks.map(({ server, check }) => inTime(server, check(), CHECK_TIMEOUT_MS)),
    );
    const problems = checks.flatMap(({ server }, index) => {
      const outcome = outcomes[index];
      return outcome?.status === 'rejected' ? [{ server, cause: outcome.reason }] : [];
    });
    if (problems.length > 0) throw notReady(problems);
    const limits = await Promise.all(checks.map(async ({ server, limit }) => ({ server, message: await limit?.() })));
    const degraded = limits.filter(({ message }) => message !== undefined);
    response.json({ status: 'ready', ...(degraded.length > 0 && { degraded }) });
  };
}

export function notReady(problems: readonly { readonly server: string; readonly cause: unknown }[]): ApiError {
  const details = problems.map(({ server, cause }) => {
    return { server, message: cause instanceof UnfitServer ? cause.message : 'does not answer' };
  });
  const isAway = details.every(({ message }) => message === 'does not answer');
  const message = isAway
    ? `Not answering: ${details.map(({ server }) => server).join(', ')}.`
    : `${details.map(({ server, message: problem }) => `${server} ${problem}`).join('; ')}.`;
  return new ApiError(503, 'not_ready', message, {
    details,
    cause: new AggregateError(problems.map(({ cause }) => cause)),
  });
}

/** What a full Redis refuses this service. Answers need nothing of it but reading. */
export function fullRedis(isFull: () => Promise<boolean>): () => Promise<string | undefined> {
  return async () => {
    // Redis does answer, so the service is ready; its user may lack the command INFO.
    const full = await inTime('Redis', isFull(), CHECK_TIMEOUT_MS).catch(() => undefined);
    if (full === undefined) return 'does not say whether it is full';
    return full ? 'is full: API keys cannot be created or revoked, and producers cannot add events' : undefined;
  };
}
