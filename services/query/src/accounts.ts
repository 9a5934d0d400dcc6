/** Accounts and the API keys of their service accounts: listed, named, created and revoked. */
import type { IncomingMessage, ServerResponse } from 'node:http';
import {
  ApiError,
  adminsOnly,
  applyVersion,
  type Caller,
  invalidBody,
  invalidParameters,
  isOperator,
  isProvisioner,
  mayWrite,
  noteInLog,
  notFound,
  orAuthUnavailable,
  principalOf,
  rawQuery,
  refuseParameters,
  requireKeyManager,
  requireLister,
  requireProvisioner,
  requireScope,
  WORKSPACE_IGNORED,
} from '@meterline/api';
import {
  ACCOUNT_LIST_PARAMETERS,
  API_KEY_LIST_PARAMETERS,
  accountSettingsSchema,
  nameText,
  newApiKeySchema,
  SERVICE_ACCOUNT_KEY_LIST_PARAMETERS,
} from '@meterline/catalog';
import { type Account, type ApiKey, TooManyApiKeys } from '@meterline/service/access';
import { remembered } from '@meterline/service/waiting';
import { readAccountsWithUsage, type Warehouse } from '@meterline/warehouse';
import type { RequestHandler } from 'express';
import type { Logger } from 'pino';
import type { z } from 'zod';
import { parseBody } from './http/body.js';
import { noSuchApiKey, orStorageUnavailable, tooManyApiKeys } from './http/errors.js';
import { admitCaller, type RouteDependencies } from './http/member.js';
import { listResponse, parseListRequest } from './http/paging.js';

export function accountsRoute(dependencies: RouteDependencies, readUsed: ReadAccounts): RequestHandler {
  const { accounts, cursors, registered } = dependencies;
  return async (request, response) => {
    const { caller, version } = await admitCaller(dependencies, request, response, undefined, requireLister);
    const wanted = parseListRequest(rawQuery(request), version, ACCOUNT_LIST_PARAMETERS, WORKSPACE_IGNORED);
    const found =
      isOperator(caller) || isProvisioner(caller)
        ? allAccounts(await registered.read(), await readUsed())
        : await orAuthUnavailable(Promise.all([...caller.roles.keys()].map((id) => accounts.find(id))));
    const entries = found.map((account) => accountEntry(account, caller));
    response.json(listResponse(entries, wanted, ['accounts', caller.id], cursors));
  };
}

/** Registered accounts, and accounts that have usage but never had a key. */
function allAccounts(registered: readonly Account[], used: readonly string[]): Account[] {
  const ids = new Set(registered.map(({ id }) => id));
  const others = used.filter((id) => !ids.has(id));
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
  const read = async () => {
    try {
      last = await orStorageUnavailable(readAccountsWithUsage(warehouse));
    } catch (error) {
      if (!(error instanceof ApiError)) throw error;
      log.warn({ event: 'accounts_not_read', err: error.cause }, 'the list of accounts may lack those without a key');
    }
    return last;
  };
  return remembered(clock, USED_MAX_AGE_MS, read).read;
}

/** An account as the API shows it. The names in a token are newer than registered ones: the platform, which issues tokens, owns accounts. */
function accountEntry({ id, name, createdAt }: Account, caller: Caller) {
  const { roles, accountNames } = caller;
  const role = roles.get(id) ?? (isOperator(caller) ? 'operator' : 'provisioner');
  return { id, name: accountNames?.get(id) ?? name, role, ...(createdAt !== undefined && { createdAt }) };
}

/** Names an account, which registers it. */
export function accountNamingRoute(dependencies: RouteDependencies): RequestHandler<{ accountId: string }> {
  const { accounts, clock, registered } = dependencies;
  return async (request, response) => {
    const { accountId } = request.params;
    const { caller } = await admitCaller(dependencies, request, response, undefined, requireProvisioner);
    refuseParameters(rawQuery(request), { ignored: WORKSPACE_IGNORED });
    requireName('accountId', accountId);
    const { name } = parseBody(request.body, accountSettingsSchema, { name: 'ACME Corp.' });
    const account = await orAuthUnavailable(accounts.register(accountId, clock(), name));
    registered.forget();
    noteInLog(request, { account: accountId });
    response.json(accountEntry(account, caller));
  };
}

/** The keys of all service accounts of an account. An account that does not exist has none. */
export function accountKeyListRoute(dependencies: RouteDependencies): RequestHandler<{ accountId: string }> {
  const { cursors, keys } = dependencies;
  return async (request, response) => {
    const { accountId } = request.params;
    const { accounts, version } = await admitKeyManager(dependencies, request, response, 'apiKey:list');
    requireManaged(accounts, accountId);
    const wanted = parseListRequest(rawQuery(request), version, API_KEY_LIST_PARAMETERS, WORKSPACE_IGNORED);
    const entries = (await orAuthUnavailable(keys.listOf(accountId))).map(keyEntry);
    response.json(listResponse(entries, wanted, ['api-keys', accountId], cursors));
  };
}

/** A service account is there as long as it has a key; one of other accounts gets 404, as if there were none. */
export function keyListRoute(dependencies: RouteDependencies): RequestHandler<{ clientId: string }> {
  const { cursors, keys } = dependencies;
  return async (request, response) => {
    const { clientId } = request.params;
    const { accounts, version } = await admitKeyManager(dependencies, request, response, 'apiKey:list');
    const wanted = parseListRequest(rawQuery(request), version, SERVICE_ACCOUNT_KEY_LIST_PARAMETERS, WORKSPACE_IGNORED);
    const listed = accountsToList(wanted.account, accounts);
    const found = await orAuthUnavailable(Promise.all(listed.map((account) => keys.listOf(account, clientId))));
    const entries = found.flat().map(keyEntry);
    if (entries.length === 0) {
      throw notFound('There is no such service account: no account that this list covers has a key of it.');
    }
    response.json(listResponse(entries, wanted, ['api-keys', listed, clientId], cursors));
  };
}

/** The accounts whose keys are listed. A provisioner names one: the keys of all accounts would be read one by one. */
function accountsToList(account: string | undefined, accounts: readonly string[] | 'all'): readonly string[] {
  if (account !== undefined) {
    requireManaged(accounts, account);
    return [account];
  }
  if (accounts !== 'all') return accounts.toSorted();
  const message =
    'account is missing; name the account of the service account, or list the keys of an account at /v0/accounts/{accountId}/api_keys.';
  throw invalidParameters([{ parameter: 'account', message }]);
}

/** A key as the API shows it. Its times are left out where there are none. */
function keyEntry({ keyId: id, clientId, account, role, createdAt, expiresAt, lastUsedAt, revokedAt }: ApiKey) {
  return {
    ...{ id, clientId, account, role, createdAt },
    ...(expiresAt !== undefined && { expiresAt }),
    ...(lastUsedAt !== undefined && { lastUsedAt }),
    revoked: revokedAt !== undefined,
    ...(revokedAt !== undefined && { revokedAt }),
  };
}

/** A new key, which is shown once. With its first key the service account is there, and so is an account that only tokens have named. */
export function keyCreationRoute(dependencies: RouteDependencies): RequestHandler<{ clientId: string }> {
  const { clock, keys, registered } = dependencies;
  return async (request, response) => {
    const { clientId } = request.params;
    const { accounts } = await admitKeyManager(dependencies, request, response, 'apiKey:write');
    refuseParameters(rawQuery(request), { ignored: WORKSPACE_IGNORED });
    requireName('clientId', clientId);
    const now = clock();
    const { role, expiresAt, ...requested } = parseBody(request.body, newApiKeySchema, { role: 'member' });
    const end = endOf(expiresAt, now);
    const account = accountOf(requested, accounts);

    const wanted = { account, role, clientId, expiresAt: end };
    const { key, ...created } = await orAuthUnavailable(keys.create(wanted, now).catch(refuseTooMany));
    registered.forget();
    noteInLog(request, { account, keyId: created.keyId });
    response.json({ ...keyEntry(created), key });
  };
}

/** @returns the accounts whose keys the caller may manage. @throws ApiError as `admitCaller` does */
async function admitKeyManager(
  { admission, authenticate }: RouteDependencies,
  request: IncomingMessage,
  response: ServerResponse,
  scope: 'apiKey:list' | 'apiKey:write',
) {
  const caller = await authenticate(request);
  const version = applyVersion(request, response);
  requireScope(caller, scope);
  const accounts = requireKeyManager(caller);
  await admission.admit(principalOf(caller), response);
  return { accounts, version };
}

/** @param parameter the name of a path's parameter */
function requireName(parameter: string, value: string): void {
  const parsed = nameText.safeParse(value);
  if (parsed.success) return;
  throw invalidParameters(
    parsed.error.issues.map(({ message }) => ({ parameter, message: `${parameter} ${message}.` })),
  );
}

/** @throws ApiError `forbidden`, the same whether there is such an account or not */
function requireManaged(accounts: readonly string[] | 'all', account: string): void {
  if (accounts !== 'all' && !accounts.includes(account)) throw adminsOnly();
}

function endOf(expiresAt: number | undefined, now: Date): Date | undefined {
  if (expiresAt === undefined) return undefined;
  if (expiresAt > now.getTime()) return new Date(expiresAt);
  throw invalidBody([{ parameter: 'expiresAt', message: 'expiresAt must lie in the future.' }]);
}

/** The account that the key is of: the one that was asked for, or the only one that it can be. */
function accountOf(
  { account }: Pick<z.output<typeof newApiKeySchema>, 'account'>,
  accounts: readonly string[] | 'all',
): string {
  if (account !== undefined) {
    requireManaged(accounts, account);
    return account;
  }
  const [only, ...others] = accounts === 'all' ? [] : accounts;
  if (only !== undefined && others.length === 0) return only;
  const message = 'account is missing; you may create keys of several accounts, so say which one the key is for.';
  throw invalidBody([{ parameter: 'account', message }]);
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
    if (apiKeyId !== caller.keyId && isOperator(caller)) requireKeyManager(caller);

    const key = await orAuthUnavailable(keys.find(apiKeyId));
    if (!key || key.clientId !== clientId || !mayRevoke(caller, key)) throw noSuchApiKey();
    await orAuthUnavailable(keys.revoke(apiKeyId, clock()));
    response.status(200).end();
  };
}

/** An admin of the owning account, a provisioner, or the key itself, whatever its role: anyone who finds a leaked key can end it. Source: DESIGN section 7. */
function mayRevoke(caller: Caller, { account, keyId }: ApiKey): boolean {
  if (caller.keyId === keyId) return true;
  return account !== undefined && (isProvisioner(caller) || mayWrite(caller, account));
}
