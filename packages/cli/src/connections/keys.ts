/** Manages API keys for `meterline keys`. Uses the API with the rights of the caller, or Redis with the rights of an operator. */
import { ACCOUNT_KEY_ROLES } from '@meterline/catalog';
import type { ApiKeyResponse, MeterlineClient } from '@meterline/client';
import { type ApiKey, ApiKeyStore, type NewApiKey, TooManyApiKeys } from '@meterline/service/access';
import { z } from 'zod';
import { type CommandContext, say } from '../command.js';
import { CommandError, EXIT_CODES, usageError } from '../failure.js';
import { type ApiFlags, displayUrl, type RedisFlags } from '../settings.js';
import { onlyAccount, withApi } from './api.js';
import { withRedis } from './servers.js';

export type ListedKey = Pick<ApiKey, 'clientId' | 'account' | 'role' | 'createdAt'> & {
  readonly keyId: string;
  readonly expiresAt?: string | undefined;
  readonly lastUsedAt?: string | undefined;
  readonly revokedAt?: string | undefined;
};

export interface KeyManager {
  /** Creates a key. @param key if it names no account, the key is for the caller's only account (API) or for all accounts (Redis) */
  create(key: NewApiKey): Promise<ListedKey & { readonly key: string }>;
  /** Returns keys, oldest first. @param account if undefined, returns keys of the caller's only account (API) or all keys (Redis) */
  list(account: string | undefined): Promise<readonly ListedKey[]>;
  /** Revokes a key and returns the time of the revocation. @throws CommandError if the key does not exist */
  revoke(keyId: string, account: string | undefined): Promise<string>;
}

export type KeyFlags = ApiFlags & RedisFlags;

/**
 * Runs `work` with the API after a login or with METERLINE_API_KEY, and otherwise with Redis. `--redis-url` and keys for all accounts
 * always use Redis.
 * @param creates the kind of key that `work` creates, if any. A Redis that may evict the new key is an error. If `work` creates
 * no key, such a Redis only causes a warning.
 * @throws CommandError
 */
export async function withKeyManager<T>(
  context: CommandContext,
  flags: KeyFlags,
  creates: 'for one account' | 'for all accounts' | undefined,
  work: (keys: KeyManager) => Promise<T>,
): Promise<T> {
  const isOfPlatform = creates === 'for all accounts';
  const service = flags.profile === undefined ? flags.apiUrl && '--api-url' : '--profile';
  if (isOfPlatform && service) {
    throw usageError(
      `keys for all accounts are created in Redis, not through the API: replace ${service} with --redis-url`,
    );
  }
  const { key, account } = await context.settings.api(flags);
  const isLoggedIn = key?.kind === 'environment' || key?.kind === 'login file';
  if (isLoggedIn && flags.redisUrl === undefined && !isOfPlatform) {
    return withApi(context, flags, ({ client }) => work(apiKeyManager(client, account?.value, context))).catch(
      hinting(
        'Operators can manage keys in Redis without an API key: use --redis-url.',
        ({ exitCode }) => exitCode === EXIT_CODES.notAllowed,
      ),
    );
  }
  if (flags.apiUrl !== undefined) {
    throw usageError('there is no API key for --api-url; run "meterline login", or set METERLINE_API_KEY');
  }
  if (creates === 'for one account' && flags.account === undefined) {
    throw usageError('choose the account of the key with --account, or for an emitter of all accounts, --all-accounts');
  }
  const redisUrl = await context.settings.redisUrl(flags);
  const canLogin = ({ cause }: CommandError) => flags.redisUrl === undefined && !isOfPlatform && cause !== undefined;
  const result = await withRedis(
    redisUrl,
    (redis) => work(redisKeyManager(new ApiKeyStore(redis), context)),
    creates ? undefined : context,
  ).catch(hinting('To manage keys through the API, run "meterline login".', canLogin));
  if (creates) say(context, `Created in Redis at ${displayUrl(redisUrl.value)} (from ${redisUrl.source}).`);
  return result;
}

/** Returns an error handler. If `applies` returns true for an error, the handler adds the hint to its message. */
function hinting(hint: string, applies: (error: CommandError) => boolean) {
  return (error: unknown): never => {
    if (!(error instanceof CommandError && applies(error))) throw error;
    throw new CommandError(`${error.message}\n${hint}`, error.exitCode, { cause: error });
  };
}

const accountRole = z.enum(ACCOUNT_KEY_ROLES);

function apiKeyManager(
  client: MeterlineClient,
  defaultAccount: string | undefined,
  { now }: Pick<CommandContext, 'now'>,
): KeyManager {
  const accountOf = async (named: string | undefined) => named ?? defaultAccount ?? (await onlyAccount(client));
  const listOf = async (account: string) => (await client.accountApiKeys(account)).map(listedKey).reverse();
  return {
    create: async ({ account: named, accountName, clientId, role, expiresAt }) => {
      const account = await accountOf(named);
      if (accountName !== undefined) await client.nameAccount(account, accountName);
      const { key, ...created } = await client.createApiKey(clientId, {
        role: accountRole.parse(role),
        account,
        expiresAt,
      });
      return { ...listedKey(created), key };
    },
    list: async (named) => listOf(await accountOf(named)),
    revoke: async (keyId, named) => {
      const account = await accountOf(named);
      const key = (await listOf(account)).find((each) => each.keyId === keyId);
      if (!key) throw noSuchKey(`${keyId} of ${account}`, '; keys for all accounts need --redis-url');
      await client.revokeApiKey(key.clientId, keyId);
      return key.revokedAt ?? now().toISOString();
    },
  };
}

function listedKey({ id: keyId, revoked: _, ...key }: ApiKeyResponse): ListedKey {
  return { keyId, ...key };
}

function redisKeyManager(keys: ApiKeyStore, { now }: Pick<CommandContext, 'now'>): KeyManager {
  return {
    create: (key) =>
      keys.create(key, now()).catch((error) => {
        throw error instanceof TooManyApiKeys ? new CommandError(error.message) : error;
      }),
    list: async (account) => (await keys.list()).filter((key) => account === undefined || key.account === account),
    revoke: async (keyId) => {
      await keys.revoke(keyId, now());
      const revokedAt = (await keys.find(keyId))?.revokedAt;
      if (revokedAt === undefined) throw noSuchKey(keyId);
      return revokedAt;
    },
  };
}

function noSuchKey(named: string, hint = ''): CommandError {
  return new CommandError(`there is no key ${named}; run "meterline keys list" to see key IDs${hint}`);
}
