/** The caller's accounts, and the keys of service accounts: listed, created and revoked. */
import type { IncomingMessage, ServerResponse } from 'node:http';
import {
  ApiError,
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
import { ACCOUNT_LIST_PARAMETERS, API_KEY_LIST_PARAMETERS, nameText, newApiKeySchema } from '@meterline/catalog';
import { type Account, type AccountDirectory, type ApiKey, TooManyApiKeys } from '@meterline/service/access';
import { readAccountsWithUsage, type Warehouse } from '@meterline/warehouse';
import type { RequestHandler } from 'express';
import type { Logger } from 'pino';
import type { z } from 'zod';
import { parseBody } from './http/body.js';
import { noSuchApiKey, orStorageUnavailable, tooManyApiKeys } from './http/errors.js';
import { admitCaller, type RouteDependencies } from './http/member.js';
import { listResponse, parseListRequest } from './http/paging.js';

export function accountsRoute(dependencies: RouteDependencies, readUsed: ReadAccounts): RequestHandler {
  const { accounts, cursors } = dependencies;
  return async (request, response) => {
    const { caller, version } = await admitCaller(dependencies, request, response);
    const wanted = parseListRequest(rawQuery(request), version, ACCOUNT_LIST_PARAMETERS, WORKSPACE_IGNORED);
    const found = caller.isOperator
      ? await allAccounts(accounts, readUsed)
      : await orAuthUnavailable(Promise.all([...caller.roles.keys()].map((id) => accounts.find(id))));
    const entries = found.map((account) => accountEntry(account, caller));
    response.json(listResponse(entries, wanted, ['accounts', caller.id], cursors));
  };
}

/** Registered accounts, and accounts that have usage but never had a key. */
async function allAccounts(directory: AccountDirectory, readUsed: ReadAccounts): Promise<Account[]> {
  const registered = await orAuthUnavailable(directory.list());
  const ids = new Set(registered.map(({ id }) => id));
  const others = (await readUsed()).filter((id) => !ids.has(id));
  return [...registered, ...others.map((id) => ({ id, name: id, createdAt: undefined }))];
}

const USED_MAX_AGE_MS = 60_000;
type ReadAccounts = () => Promise<readonly string[]>;

/**
 * Reads the accounts with usage, at most once a minute because the statement reads all account-days. While ClickHouse fails, returns
 * the last list, so that operators can sign in. Takes no permit: a request that is canceled must not fail those that share its statement.
 */
export function usedAccountsReader(clock: () => Date, log: Logger, warehouse: Warehouse): ReadAccounts {
  let last: readonly string[] = [];
  let startedAt = Number.NEGATIVE_INFINITY;
  let current = Promise.resolve(last);
  const read = async () => {
    try {
      last = await orStorageUnavailable(readAccountsWithUsage(warehouse));
    } catch (error) {
      if (!(error instanceof ApiError)) throw error;
      log.warn({ event: 'accounts_not_read', err: error.cause }, 'the list of accounts may lack those without a key');
    }
    return last;
  };
  return () => {
    const now = clock().getTime();
    if (now - startedAt >= USED_MAX_AGE_MS) [startedAt, current] = [now, read()];
    return current;
  };
}

/** An account as the API shows it. The names in a token are newer than registered ones: the platform, which issues tokens, owns accounts. */
function accountEntry({ id, name, createdAt }: Account, { roles, accountNames }: Caller) {
  const role = roles.get(id) ?? 'operator';
  return { id, name: accountNames?.get(id) ?? name, role, ...(createdAt !== undefined && { createdAt }) };
}

/** A service account is there as long as it has a key; one of other accounts gets 404, as if there were none. */
export function keyListRoute(dependencies: RouteDependencies): RequestHandler<{ clientId: string }> {
  const { cursors, keys } = dependencies;
  return async (request, response) => {
    const { clientId } = request.params;
    const { accounts, version } = await admitKeyAdmin(dependencies, request, response, 'apiKey:list');
    const wanted = parseListRequest(rawQuery(request), version, API_KEY_LIST_PARAMETERS, WORKSPACE_IGNORED);
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
export function keyCreationRoute(dependencies: RouteDependencies): RequestHandler<{ clientId: string }> {
  const { clock, keys } = dependencies;
  return async (request, response) => {
    const { clientId } = request.params;
    const { accounts } = await admitKeyAdmin(dependencies, request, response, 'apiKey:write');
    refuseParameters(rawQuery(request), { ignored: WORKSPACE_IGNORED });
    requireName(clientId);
    const now = clock();
    const { role, expiresAt, ...requested } = parseBody(request.body, newApiKeySchema, { role: 'member' });
    const end = endOf(expiresAt, now);
    const account = accountOf(requested, accounts);

    const wanted = { account, role, clientId, expiresAt: end };
    const { key, ...created } = await orAuthUnavailable(keys.create(wanted, now).catch(refuseTooMany));
    noteInLog(request, { account, keyId: created.keyId });
    response.json({ ...keyEntry(created), key });
  };
}

/** @returns the accounts that the caller is an admin of. @throws ApiError as `admitCaller` does */
async function admitKeyAdmin(
  { admission, authenticate }: RouteDependencies,
  request: IncomingMessage,
  response: ServerResponse,
  scope: 'apiKey:list' | 'apiKey:write',
) {
  const caller = await authenticate(request);
  const version = applyVersion(request, response);
  requireScope(caller, scope);
  const accounts = requireAdminAccounts(caller);
  await admission.admit(principalOf(caller), response);
  return { accounts, version };
}

function requireName(clientId: string): void {
  const parsed = nameText.safeParse(clientId);
  if (parsed.success) return;
  const problems = parsed.error.issues.map(({ message }) => ({
    parameter: 'clientId',
    message: `clientId ${message}.`,
  }));
  throw invalidParameters(problems);
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
