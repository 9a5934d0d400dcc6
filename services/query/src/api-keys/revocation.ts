/** DELETE /v0/service_accounts/{clientId}/api_keys/{apiKeyId} */

import type { ApiKey, ApiKeyStore } from '@meterline/access';
import {
  type Authenticate,
  applyVersion,
  type Caller,
  notFound,
  orAuthUnavailable,
  rawQuery,
  refuseParameters,
  requireScope,
  WORKSPACE_IGNORED,
} from '@meterline/api';
import type { RequestHandler } from 'express';

export interface RevocationRouteDependencies {
  readonly authenticate: Authenticate;
  readonly clock: () => Date;
  readonly keys: ApiKeyStore;
}

/** Revokes at once and everywhere; revoking again is no error. A caller who may not revoke a key gets 404, as if there were none. */
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
    refuseParameters(rawQuery(request), { ignored: WORKSPACE_IGNORED });

    const key = await orAuthUnavailable(keys.find(apiKeyId));
    if (!key || key.clientId !== clientId || !mayRevoke(caller, key)) {
      throw notFound(
        'There is no such API key that you may revoke: one of an account that you are an admin of, or your own.',
      );
    }
    await orAuthUnavailable(keys.revoke(apiKeyId, clock()));
    response.status(200).end();
  };
}

/** An admin of the owning account, or the key itself, whatever its role: anyone who finds a leaked key can end it. Source: DESIGN section 7. */
function mayRevoke({ keyId, roles }: Caller, key: ApiKey): boolean {
  return keyId === key.keyId || roles.get(key.account) === 'admin';
}
