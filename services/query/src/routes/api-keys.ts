/** DELETE /v0/service_accounts/{clientId}/api_keys/{apiKeyId} */
import type { ApiKeyStore } from '@meterline/access';
import type { RequestHandler } from 'express';
import type { Authenticate } from '../auth/authenticate.js';
import { requireScope } from '../auth/authorise.js';
import { refuseParameters } from '../contracts/query-parameters.js';
import { applyVersion } from '../contracts/version.js';
import { notFound } from '../http/errors.js';
import { accessAnswer } from '../http/outages.js';
import { rawQuery } from '../http/request-checks.js';

export interface RevocationRouteDependencies {
  readonly authenticate: Authenticate;
  readonly clock: () => Date;
  readonly keys: ApiKeyStore;
}

/** Revokes at once, everywhere; again is no error. Whoever may not revoke a key learns nothing of it: 404. */
export function revocationRoute({
  authenticate,
  clock,
  keys,
}: RevocationRouteDependencies): RequestHandler<{ clientId: string; apiKeyId: string }> {
  return async (request, response) => {
    const { clientId, apiKeyId } = request.params;
    const caller = await authenticate(request);
    applyVersion(request, response);
    requireScope(caller, 'apiKey:write');
    refuseParameters(rawQuery(request));

    const key = await accessAnswer(keys.find(apiKeyId));
    if (!key || key.clientId !== clientId || caller.roles.get(key.account) !== 'admin') {
      throw notFound('There is no such API key in an account that you are an admin of.');
    }
    await accessAnswer(keys.revoke(apiKeyId, clock()));
    response.status(200).end();
  };
}
