/** /v0/service_accounts/{clientId}/api_keys: the keys of a service account, listed, created and revoked. */

import {
  adminsOnly,
  applyVersion,
  type Caller,
  invalidBody,
  invalidParameters,
  noteInLog,
  notFound,
  orAuthUnavailable,
  principalOf,
  rawQuery,
  refuseParameters,
  requireAdminAccounts,
  requireScope,
  requireWriter,
  WORKSPACE_IGNORED,
} from '@meterline/api';
import { API_KEY_LIST_PARAMETERS, API_KEY_SORTS, nameText, newApiKeySchema } from '@meterline/catalog';
import { type ApiKey, TooManyApiKeys } from '@meterline/service/access';
import type { RequestHandler } from 'express';
import type { z } from 'zod';
import { parseBody } from '../http/body.js';
import { noSuchApiKey, tooManyApiKeys } from '../http/errors.js';
import type { RouteDependencies } from '../http/member.js';
import { listResponse, parseListRequest } from '../http/paging.js';

const LIST_RULES = { parameters: API_KEY_LIST_PARAMETERS, sorts: API_KEY_SORTS };

/** A service account is there as long as it has a key; one of other accounts gets 404, as if there were none. */
export function keyListRoute({
  admission,
  authenticate,
  cursors,
  keys,
}: RouteDependencies): RequestHandler<{ clientId: string }> {
  return async (request, response) => {
    const { clientId } = request.params;
    const caller = await authenticate(request);
    const version = applyVersion(request, response);
    requireScope(caller, 'apiKey:list');
    const accounts = requireAdminAccounts(caller);
    await admission.admit(principalOf(caller), response);
    const wanted = parseListRequest(rawQuery(request), version, LIST_RULES);
    const found = await orAuthUnavailable(Promise.all(accounts.map((account) => keys.listOf(account, clientId))));
    const entries = found.flat().map(keyEntry);
    if (entries.length === 0) {
      throw notFound('There is no such service account: no account that you are an admin of has a key of it.');
    }
    response.json(listResponse(entries, wanted, ['api-keys', [...accounts].sort(), clientId], cursors));
  };
}

/** A key as the API shows it. Its times are left out where there are none. */
function keyEntry({ keyId: id, account, role, createdAt, expiresAt, lastUsedAt, revokedAt }: ApiKey) {
  return {
    ...{ id, account, role, createdAt },
    ...(expiresAt !== undefined && { expiresAt }),
    ...(lastUsedAt !== undefined && { lastUsedAt }),
    revoked: revokedAt !== undefined,
  };
}

/** A new key, which is shown once. With its first key the service account is there, and so is an account that only tokens have named. */
export function keyCreationRoute({
  admission,
  authenticate,
  clock,
  keys,
}: RouteDependencies): RequestHandler<{ clientId: string }> {
  return async (request, response) => {
    const { clientId } = request.params;
    const caller = await authenticate(request);
    applyVersion(request, response);
    requireScope(caller, 'apiKey:write');
    const accounts = requireAdminAccounts(caller);
    await admission.admit(principalOf(caller), response);
    refuseParameters(rawQuery(request), { ignored: WORKSPACE_IGNORED });
    requireName(clientId);
    const now = clock();
    const { role, expiresAt, ...asked } = parseBody(request.body, newApiKeySchema, { role: 'member' });
    const end = endOf(expiresAt, now);
    const account = accountOf(asked, accounts);

    const wanted = { account, role, clientId, expiresAt: end };
    const { key, ...created } = await orAuthUnavailable(keys.create(wanted, now).catch(refuseTooMany));
    noteInLog(request, { account, keyId: created.keyId });
    response.json({ ...keyEntry(created), key });
  };
}

function requireName(clientId: string): void {
  const parsed = nameText.safeParse(clientId);
  if (parsed.success) return;
  const faults = parsed.error.issues.map(({ message }) => ({ parameter: 'clientId', message: `clientId ${message}.` }));
  throw invalidParameters(faults);
}

function endOf(expiresAt: number | undefined, now: Date): Date | undefined {
  if (expiresAt === undefined) return undefined;
  if (expiresAt > now.getTime()) return new Date(expiresAt);
  throw invalidBody([{ parameter: 'expiresAt', message: 'expiresAt must lie in the future.' }]);
}

/** The account that the key is to read: the one that was asked for, or the only one that it can be. */
function accountOf(
  { account }: Pick<z.output<typeof newApiKeySchema>, 'account'>,
  accounts: readonly string[],
): string {
  const [only = '', ...others] = accounts;
  if (account === undefined && others.length === 0) return only;
  if (account === undefined) {
    const message = 'account is missing; you are an admin of several accounts, so say which one the key is for.';
    throw invalidBody([{ parameter: 'account', message }]);
  }
  if (!accounts.includes(account)) throw adminsOnly();
  return account;
}

function refuseTooMany(error: unknown): never {
  throw error instanceof TooManyApiKeys ? tooManyApiKeys() : error;
}

/**
 * Revokes at once and everywhere; revoking again is no error. A caller who may not revoke a key gets 404, as if there were none;
 * an operator's key, which may revoke none but itself, 403.
 */
export function revocationRoute({
  authenticate,
  clock,
  keys,
}: RouteDependencies): RequestHandler<{ clientId: string; apiKeyId: string }> {
  return async (request, response) => {
    const { clientId, apiKeyId } = request.params;
    const caller = await authenticate(request);
    applyVersion(request, response);
    requireScope(caller, 'apiKey:write');
    refuseParameters(rawQuery(request), { ignored: WORKSPACE_IGNORED });
    if (apiKeyId !== caller.keyId) requireWriter(caller);

    const key = await orAuthUnavailable(keys.find(apiKeyId));
    if (!key || key.clientId !== clientId || !mayRevoke(caller, key)) throw noSuchApiKey();
    await orAuthUnavailable(keys.revoke(apiKeyId, clock()));
    response.status(200).end();
  };
}

/** An admin of the owning account, or the key itself, whatever its role: anyone who finds a leaked key can end it. Source: DESIGN section 7. */
function mayRevoke({ keyId, roles }: Caller, key: ApiKey): boolean {
  return keyId === key.keyId || roles.get(key.account) === 'admin';
}
