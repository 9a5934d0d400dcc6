/** Handles the requests for accounts and API keys: lists and names accounts, and lists, creates and revokes keys. */
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
  requireKeyManager,
  requireLister,
  requireNoParameters,
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
import { admitCaller, type Requires } from './http/member.js';
import { listResponse, parseListRequest } from './http/paging.js';

export function accountsRoute(
  dependencies: Requires<'accounts' | 'cursors' | 'registered'>,
  readUsed: ReadAccounts,
): RequestHandler {
  const { accounts, cursors, registered } = dependencies;
  return async (request, response) => {
    const { caller, version } = await admitCaller(dependencies, request, response, undefined, requireLister);
    const list = parseListRequest(rawQuery(request), version, ACCOUNT_LIST_PARAMETERS, WORKSPACE_IGNORED);
    const visible =
      isOperator(caller) || isProvisioner(caller)
        ? allAccounts(await registered.read(), await readUsed())
        : await orAuthUnavailable(Promise.all([...caller.roles.keys()].map((id) => accounts.find(id))));
    const entries = visible.map((account) => accountEntry(account, caller));
    response.json(listResponse(entries, list, ['accounts', caller.id], cursors));
  };
}

function allAccounts(registered: readonly Account[], used: readonly string[]): Account[] {
  const ids = new Set(registered.map(({ id }) => id));
  const others = used.filter((id) => !ids.has(id));
  return [...registered, ...others.map((id) => ({ id, name: id, createdAt: undefined }))];
}

const USED_MAX_AGE_MS = 60_000;
type ReadAccounts = () => Promise<readonly string[]>;

/**
 * Reads the accounts with usage at most once a minute, because the statement reads one row per account and day. While ClickHouse is down,
 * returns the last list, so that operators can still sign in. Requests share the statement. It therefore needs no request's permit, and is
 * not canceled if a client disconnects.
 */
export function usedAccountsReader(clock: () => Date, log: Logger, warehouse: Warehouse): ReadAccounts {
  let last: readonly string[] = [];
  const read = async () => {
    try {
      last = await orStorageUnavailable(readAccountsWithUsage(warehouse));
    } catch (error) {
      if (!(error instanceof ApiError)) throw error;
      log.warn(
        { event: 'accounts_not_read', err: error.cause },
        'the list of accounts may lack accounts without a key',
      );
    }
    return last;
  };
  return remembered(clock, USED_MAX_AGE_MS, read).read;
}

/** Names in tokens take precedence over registered names, because the platform that issues tokens owns the accounts. */
function accountEntry({ id, name, createdAt }: Account, caller: Caller) {
  const { roles, accountNames } = caller;
  const role = roles.get(id) ?? (isOperator(caller) ? 'operator' : 'provisioner');
  return { id, name: accountNames?.get(id) ?? name, role, ...(createdAt !== undefined && { createdAt }) };
}

export function accountNamingRoute(
  dependencies: Requires<'accounts' | 'clock' | 'registered'>,
): RequestHandler<{ accountId: string }> {
  const { accounts, clock, registered } = dependencies;
  return async (request, response) => {
    const { accountId } = request.params;
    const { caller } = await admitCaller(dependencies, request, response, undefined, requireProvisioner);
    requireNoParameters(rawQuery(request), { ignored: WORKSPACE_IGNORED });
    requireName('accountId', accountId);
    const { name } = parseBody(request.body, accountSettingsSchema, { name: 'ACME Corp.' });
    const account = await orAuthUnavailable(accounts.register(accountId, clock(), name));
    registered.forget();
    noteInLog(request, { account: accountId });
    response.json(accountEntry(account, caller));
  };
}

/** Lists the keys of all service accounts of an account. Returns an empty list if the account does not exist. */
export function accountKeyListRoute(dependencies: Requires<'cursors' | 'keys'>): RequestHandler<{ accountId: string }> {
  const { cursors, keys } = dependencies;
  return async (request, response) => {
    const { accountId } = request.params;
    const { accounts, version } = await admitKeyManager(dependencies, request, response, 'apiKey:list');
    requireManaged(accounts, accountId);
    const list = parseListRequest(rawQuery(request), version, API_KEY_LIST_PARAMETERS, WORKSPACE_IGNORED);
    const entries = (await orAuthUnavailable(keys.listOf(accountId))).map(keyEntry);
    response.json(listResponse(entries, list, ['api-keys', accountId], cursors));
  };
}

/**
 * A service account exists as long as it has a key. If the caller may manage none of its keys, the response is 404, as if it did not exist.
 */
export function keyListRoute(dependencies: Requires<'cursors' | 'keys'>): RequestHandler<{ clientId: string }> {
  const { cursors, keys } = dependencies;
  return async (request, response) => {
    const { clientId } = request.params;
    const { accounts, version } = await admitKeyManager(dependencies, request, response, 'apiKey:list');
    const list = parseListRequest(rawQuery(request), version, SERVICE_ACCOUNT_KEY_LIST_PARAMETERS, WORKSPACE_IGNORED);
    const owners = accountsToList(list.account, accounts);
    const keysByOwner = await orAuthUnavailable(Promise.all(owners.map((account) => keys.listOf(account, clientId))));
    const entries = keysByOwner.flat().map(keyEntry);
    if (entries.length === 0) {
      throw notFound('There is no such service account: it has no key in the accounts that this list covers.');
    }
    response.json(listResponse(entries, list, ['api-keys', owners, clientId], cursors));
  };
}

/** Returns the accounts whose keys to list. A provisioner must name an account, because listing the keys of all accounts would be slow. */
function accountsToList(account: string | undefined, accounts: readonly string[] | 'all'): readonly string[] {
  if (account !== undefined) {
    requireManaged(accounts, account);
    return [account];
  }
  if (accounts !== 'all') return accounts.toSorted();
  const message =
    'account is missing; set it to the account of the service account, or list all keys of an account at /v0/accounts/{accountId}/api_keys.';
  throw invalidParameters([{ parameter: 'account', message }]);
}

function keyEntry({ keyId: id, clientId, account, role, createdAt, expiresAt, lastUsedAt, revokedAt }: ApiKey) {
  return {
    id,
    clientId,
    account,
    role,
    createdAt,
    ...(expiresAt !== undefined && { expiresAt }),
    ...(lastUsedAt !== undefined && { lastUsedAt }),
    revoked: revokedAt !== undefined,
    ...(revokedAt !== undefined && { revokedAt }),
  };
}

/**
 * The response shows the secret, which is returned only once. The first key of a service account creates the service account, and the first
 * key of an account registers the account.
 */
export function keyCreationRoute(
  dependencies: Requires<'clock' | 'keys' | 'registered'>,
): RequestHandler<{ clientId: string }> {
  const { clock, keys, registered } = dependencies;
  return async (request, response) => {
    const { clientId } = request.params;
    const { accounts } = await admitKeyManager(dependencies, request, response, 'apiKey:write');
    requireNoParameters(rawQuery(request), { ignored: WORKSPACE_IGNORED });
    requireName('clientId', clientId);
    const now = clock();
    const { role, expiresAt: expiry, ...requested } = parseBody(request.body, newApiKeySchema, { role: 'member' });
    const expiresAt = futureDate(expiry, now);
    const account = accountOf(requested, accounts);

    const newKey = { account, role, clientId, expiresAt };
    const { key, ...created } = await orAuthUnavailable(keys.create(newKey, now).catch(rejectTooMany));
    registered.forget();
    noteInLog(request, { account, keyId: created.keyId });
    response.json({ ...keyEntry(created), key });
  };
}

/** Returns the accounts whose keys the caller may manage. Throws what {@link admitCaller} throws. */
async function admitKeyManager(
  { admission, authenticate }: Requires,
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

function requireName(parameter: string, value: string): void {
  const parsed = nameText.safeParse(value);
  if (parsed.success) return;
  throw invalidParameters(
    parsed.error.issues.map(({ message }) => ({ parameter, message: `${parameter} ${message}.` })),
  );
}

/** Throws `forbidden` if the caller may not manage the account, with the same message whether or not the account exists. */
function requireManaged(accounts: readonly string[] | 'all', account: string): void {
  if (accounts !== 'all' && !accounts.includes(account)) throw adminsOnly();
}

function futureDate(expiresAt: number | undefined, now: Date): Date | undefined {
  if (expiresAt === undefined) return undefined;
  if (expiresAt > now.getTime()) return new Date(expiresAt);
  throw invalidBody([{ parameter: 'expiresAt', message: 'expiresAt must be in the future.' }]);
}

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
  const message =
    'account is missing; you may create keys of several accounts, so set account to the owner of the key.';
  throw invalidBody([{ parameter: 'account', message }]);
}

function rejectTooMany(error: unknown): never {
  throw error instanceof TooManyApiKeys ? tooManyApiKeys() : error;
}

/**
 * Revokes a key immediately in all processes. Revoking it again is not an error. A caller who may not revoke the key gets 404, as if it did
 * not exist. An operator gets 403 for every key except its own.
 */
export function revocationRoute({
  authenticate,
  clock,
  keys,
}: Requires<'clock' | 'keys'>): RequestHandler<{ clientId: string; apiKeyId: string }> {
  return async (request, response) => {
    const { clientId, apiKeyId } = request.params;
    const caller = await authenticate(request);
    applyVersion(request, response);
    requireScope(caller, 'apiKey:write');
    requireNoParameters(rawQuery(request), { ignored: WORKSPACE_IGNORED });
    if (apiKeyId !== caller.keyId && isOperator(caller)) requireKeyManager(caller);

    const key = await orAuthUnavailable(keys.find(apiKeyId));
    if (!key || key.clientId !== clientId || !mayRevoke(caller, key)) throw noSuchApiKey();
    await orAuthUnavailable(keys.revoke(apiKeyId, clock()));
    response.status(200).end();
  };
}

/** Every key may revoke itself, so that anyone who finds a leaked key can disable it. Source: docs/api-contract.md, "Roles". */
function mayRevoke(caller: Caller, { account, keyId }: ApiKey): boolean {
  if (caller.keyId === keyId) return true;
  return account !== undefined && (isProvisioner(caller) || mayWrite(caller, account));
}
