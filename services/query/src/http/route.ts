import type { Request } from 'express';
import { z } from 'zod';

const matched = z.object({ path: z.string() });

/**
 * The route that a request has come to, as it is written in app.ts: `/v0/accounts/:accountId/metrics`. Undefined when no
 * route fits, or something before the routes has answered.
 */
export function routeOf(request: Request): string | undefined {
  return matched.safeParse(request.route).data?.path;
}
