/** POST /v0/service_accounts/{clientId}/api_keys: a new key, which is shown once. */

import { type ApiKeyStore, TooManyApiKeys } from '@meterline/access';
import {
  type Authenticate,
  accessDenied,
  applyVersion,
  invalidBody,
  invalidParameters,
  noteInLog,
  orAuthUnavailable,
  partyOf,
  rawQuery,
  refuseParameters,
  requireAdminAccounts,
  requireScope,
  WORKSPACE_IGNORED,
} from '@meterline/api';
import { nameText, newApiKeySchema } from '@meterline/catalog/api';
import type { RequestHandler } from 'express';
import type { z } from 'zod';
import type { Admission } from '../admission/admission.js';
import { tooManyApiKeys } from '../http/errors.js';
import { parseBody } from '../http/json-body.js';
import { keyEntry } from './list.js';

export interface KeyCreationRouteDependencies {
  readonly admission: Admission;
  readonly authenticate: Authenticate;
  readonly clock: () => Date;
  readonly keys: ApiKeyStore;
}

/** With its first key the service account is there, and so is an account that only tokens have named. */
export function keyCreationRoute({
  admission,
  authenticate,
  clock,
  keys,
}: KeyCreationRouteDependencies): RequestHandler<{ clientId: string }> {
  return async (request, response) => {
    const { clientId } = request.params;
    const caller = await authenticate(request);
    applyVersion(request, response);
    requireScope(caller, 'apiKey:write');
    const accounts = requireAdminAccounts(caller);
    await admission.enter(partyOf(caller), response, false);
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
  if (!accounts.includes(account)) throw accessDenied();
  return account;
}

function refuseTooMany(error: unknown): never {
  throw error instanceof TooManyApiKeys ? tooManyApiKeys() : error;
}
