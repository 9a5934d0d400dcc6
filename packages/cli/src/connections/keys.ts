/** API keys as `meterline keys` manages them: over the API with the caller's rights, or in Redis with an operator's. */
import type { ApiKeyResponse, MeterlineClient } from '@meterline/client';
import { type ApiKey, ApiKeyStore, type KeyRole, TooManyApiKeys } from '@meterline/service/access';
import type { CommandContext } from '../command.js';
import { CommandError, EXIT_CODES, usageError } from '../failure.js';
import type { ApiFlags, RedisFlags } from '../settings.js';
import { onlyAccount, withApi } from './api.js';
import { withRedis } from './servers.js';

interface KeyToCreate {
  /** For all accounts, which only Redis creates; then there is no account. */
  readonly isOfPlatform: boolean;
  /** Undefined: over the API the only account of the caller. */
  readonly account: string | undefined;
  /** The new name of the account; undefined: it keeps its own. */
  readonly accountName: string | undefined;
  readonly role: KeyRole;
  readonly clientId: string;
  readonly expiresAt: Date | undefined;
}

export type ListedKey = Pick<ApiKey, 'clientId' | 'account' | 'role' | 'createdAt'> & {
  readonly keyId: string;
  readonly expiresAt?: string | undefined;
  readonly lastUsedAt?: string | undefined;
  readonly revokedAt?: string | undefined;
};

export interface KeyManager {
  create(key: KeyToCreate): Promise<ListedKey & { readonly key: string }>;
  /** The keys, the oldest first. @param account undefined: over the API the only account of the caller, in Redis all */
  list(account: string | undefined): Promise<readonly ListedKey[]>;
  /** @returns when the key was revoked. @throws CommandError when there is no such key */
  revoke(keyId: string, account: string | undefined): Promise<string>;
}

export type KeyFlags = ApiFlags & RedisFlags;

/**
 * Runs `work` with the API if somebody is logged in, else with Redis. `--redis-url` and a key for all accounts mean Redis.
 * @param kind `isOfPlatform`: a key for all accounts is created; `adds`: a key is added, so a Redis that may evict it is refused
 * @throws CommandError
 */
export async function withKeyManager<T>(
  context: CommandContext,
  flags: KeyFlags,
  { isOfPlatform = false, adds = false }: { readonly isOfPlatform?: boolean; readonly adds?: boolean },
  work: (keys: KeyManager) => Promise<T>,
): Promise<T> {
  const { key, account } = await context.settings.api(flags);
  const isLoggedIn = key?.kind === 'environment' || key?.kind === 'login file';
  if (isLoggedIn && flags.redisUrl === undefined && !isOfPlatform) {
    return withApi(context, flags, ({ client }) => work(apiKeyManager(client, account?.value))).catch((error) => {
      if (!(error instanceof CommandError) || error.exitCode !== EXIT_CODES.notAllowed) throw error;
      throw new CommandError(`${error.message}\nWith access to Redis, --redis-url needs no right.`, error.exitCode);
    });
  }
  if (flags.apiUrl !== undefined) {
    throw usageError(
      isOfPlatform
        ? 'a key for all accounts is created in Redis: give --redis-url in place of --api-url'
        : 'there is no API key for --api-url: run "meterline login", or set METERLINE_API_KEY',
    );
  }
  const redisUrl = await context.settings.redisUrl(flags);
  return withRedis(
    redisUrl,
    (redis) => work(redisKeyManager(new ApiKeyStore(redis), context)),
    adds ? undefined : context,
  );
}

/** @param usual the account that is meant where none is named */
function apiKeyManager(client: MeterlineClient, usual: string | undefined): KeyManager {
  const accountOf = async (named: string | undefined) => named ?? usual ?? (await onlyAccount(client));
  const listOf = async (account: string) => (await client.accountApiKeys(account)).map(listedKey).reverse();
  return {
    create: async ({ account: named, accountName, clientId, role, expiresAt }) => {
      const account = await accountOf(named);
      if (accountName !== undefined) await client.nameAccount(account, accountName);
      if (role === 'operator' || role === 'provisioner') throw usageError(`the API creates no key of role ${role}`);
      const { key, ...created } = await client.createApiKey(clientId, { role, account, expiresAt });
      return { ...listedKey(created), key };
    },
    list: async (named) => listOf(await accountOf(named)),
    revoke: async (keyId, named) => {
      const account = await accountOf(named);
      const find = async () => (await listOf(account)).find((key) => key.keyId === keyId);
      const key = await find();
      if (!key) throw noSuchKey(keyId);
      await client.revokeApiKey(key.clientId, keyId);
      return key.revokedAt ?? (await find())?.revokedAt ?? new Date().toISOString();
    },
  };
}

function listedKey({ id: keyId, revoked: _, ...key }: ApiKeyResponse): ListedKey {
  return { keyId, ...key };
}

function redisKeyManager(keys: ApiKeyStore, { now }: CommandContext): KeyManager {
  return {
    create: async ({ isOfPlatform, ...key }) => {
      if (!isOfPlatform && key.account === undefined) throw usageError('name the account of the key with --account');
      return keys.create(key, now()).catch((error) => {
        throw error instanceof TooManyApiKeys ? new CommandError(error.message) : error;
      });
    },
    list: async (account) => (await keys.list()).filter((key) => account === undefined || key.account === account),
    revoke: async (keyId) => {
      await keys.revoke(keyId, now());
      const revokedAt = (await keys.find(keyId))?.revokedAt;
      if (revokedAt === undefined) throw noSuchKey(keyId);
      return revokedAt;
    },
  };
}

function noSuchKey(keyId: string): CommandError {
  return new CommandError(`there is no key ${keyId}; "meterline keys list" shows the ids`);
}
