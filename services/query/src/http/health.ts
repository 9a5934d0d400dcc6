/** GET /healthz: the process runs. GET /readyz: the servers that it depends on answer too. */
import { inTime } from '@meterline/service';
import type { RequestHandler } from 'express';
import { ApiError } from './errors.js';

export const healthRoute: RequestHandler = (_request, response) => {
  response.json({ status: 'ok' });
};

export interface ReadinessCheck {
  readonly server: string;
  /** Rejects when the server does not answer. */
  readonly check: () => Promise<unknown>;
}

const CHECK_TIMEOUT_MS = 3_000;

export function readinessRoute(checks: readonly ReadinessCheck[]): RequestHandler {
  return async (_request, response) => {
    const outcomes = await Promise.allSettled(
      checks.map(({ server, check }) => inTime(server, check(), CHECK_TIMEOUT_MS)),
    );
    const away = checks.filter((_, index) => outcomes[index]?.status === 'rejected').map(({ server }) => server);
    if (away.length > 0) {
      const causes = outcomes.flatMap((outcome) => (outcome.status === 'rejected' ? [outcome.reason] : []));
      throw new ApiError(503, 'not_ready', `Not answering: ${away.join(', ')}.`, {
        details: away.map((server) => ({ server, message: 'does not answer' })),
        cause: new AggregateError(causes),
      });
    }
    response.json({ status: 'ready' });
  };
}
