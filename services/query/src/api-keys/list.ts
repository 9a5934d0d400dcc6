/** GET /v0/service_accounts/{clientId}/api_keys: the keys of a service account, revoked and expired ones included. */

import type { ApiKey, ApiKeyStore } from '@meterline/access';
import {
  type Authenticate,
  applyVersion,
  notFound,
  orAuthUnavailable,
  partyOf,
  rawQuery,
  requireAdminAccounts,
  requireScope,
} from '@meterline/api';
import { API_KEY_LIST_PARAMETERS, API_KEY_SORTS } from '@meterline/catalog/api';
import type { RequestHandler } from 'express';
import type { Admission } from '../admission/admission.js';
import type { CursorCodec } from '../http/cursor-codec.js';
import { listAnswer, parseListRequest } from '../http/lists.js';

export interface KeyListRouteDependencies {
  readonly admission: Admission;
  readonly authenticate: Authenticate;
  readonly cursors: CursorCodec;
  readonly keys: ApiKeyStore;
}

const RULES = { parameters: API_KEY_LIST_PARAMETERS, sorts: API_KEY_SORTS };

/** A service account is there as long as it has a key; one of other accounts gets 404, as if there were none. */
export function keyListRoute({
  admission,
  authenticate,
  cursors,
  keys,
}: KeyListRouteDependencies): RequestHandler<{ clientId: string }> {
  return async (request, response) => {
    const { clientId } = request.params;
    const caller = await authenticate(request);
    const version = applyVersion(request, response);
    requireScope(caller, 'apiKey:list');
    const accounts = requireAdminAccounts(caller);
    await admission.enter(partyOf(caller), response, false);
    const asked = parseListRequest(rawQuery(request), version, RULES);
    const found = await orAuthUnavailable(Promise.all(accounts.map((account) => keys.listOf(account, clientId))));
    const entries = found.flat().map(keyEntry);
    if (entries.length === 0) {
      throw notFound('There is no such service account: no account that you are an admin of has a key of it.');
    }
    response.json(listAnswer(entries, asked, ['api-keys', [...accounts].sort(), clientId], cursors));
  };
}

/** A key as the API shows it. Its times are left out where there are none. */
export function keyEntry({ keyId: id, account, role, createdAt, expiresAt, lastUsedAt, revokedAt }: ApiKey) {
  return {
    ...{ id, account, role, createdAt },
    ...(expiresAt !== undefined && { expiresAt }),
    ...(lastUsedAt !== undefined && { lastUsedAt }),
    revoked: revokedAt !== undefined,
  };
}
