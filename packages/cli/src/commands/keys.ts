import { randomBytes } from 'node:crypto';
import type { EpochMs } from '@meterline/catalog';
import { type ApiKey, ApiKeyStore, KEY_ROLES, type KeyRole, TooManyApiKeys } from '@meterline/service/access';
import { type Command, Option } from 'commander';
import type { CommandContext } from '../command.js';
import { withRedis } from '../connections/servers.js';
import { CommandError, usageError } from '../failure.js';
import { nameOf, type OutputFlags, timeOf, withOutput, withRedisUrl } from '../flags.js';
import { printResult } from '../output/result.js';
import { fieldLines, type ItemColumn, printList } from '../output/table.js';
import type { RedisFlags } from '../settings.js';

const COLUMNS: readonly ItemColumn<ApiKey>[] = [
  { heading: 'KEY', cell: ({ keyId }) => keyId },
  { heading: 'ACCOUNT', cell: ({ account }) => account },
  { heading: 'ROLE', cell: ({ role }) => role },
  { heading: 'CLIENT', cell: ({ clientId }) => clientId },
  { heading: 'CREATED', cell: ({ createdAt }) => createdAt },
  { heading: 'EXPIRES', cell: ({ expiresAt = '' }) => expiresAt },
  { heading: 'LAST USED', cell: ({ lastUsedAt = '' }) => lastUsedAt },
  { heading: 'REVOKED', cell: ({ revokedAt = '' }) => revokedAt },
];

type KeysFlags = RedisFlags & OutputFlags;

interface CreateFlags extends KeysFlags {
  readonly account: string;
  readonly role: KeyRole;
  readonly client?: string;
  readonly name?: string;
  readonly expiresAt?: EpochMs;
}

interface ListFlags extends KeysFlags {
  readonly account?: string;
}

export function addKeys(keys: Command, context: CommandContext): void {
  keys.description('API keys of the query API and the collector');

  const create = keys
    .command('create')
    .summary('create a key; its text is shown this once')
    .description(
      'Creates an API key, and with the first key of an account the account. The key itself is shown once and kept ' +
        'only as a hash.\nAn admin may group and filter by workspace; a member sees the account as a whole; an ' +
        'emitter may send events to the collector and read nothing; an operator reads every account, as an admin of it, and changes nothing.',
    )
    .requiredOption('--account <account>', 'the account whose usage it may read, or send', nameOf)
    .addOption(new Option('--role <role>', 'what it may do there').choices(KEY_ROLES).makeOptionMandatory())
    .option('--client <client>', 'the service account it belongs to (default: a new one, client_<random>)', nameOf)
    .option(
      '--name <name>',
      'the name of the account, from now on (default: it keeps its own, at first its id)',
      nameOf,
    )
    .option(
      '--expires-at <time>',
      'when the key stops to be valid, such as 2027-01-01T00:00:00Z (default: never)',
      timeOf,
    )
    .action((flags: CreateFlags) => createKey(context, flags));
  withOutput(withRedisUrl(create));

  const list = keys
    .command('list')
    .summary('list keys, revoked ones included')
    .description(
      'Lists the keys, the oldest first, revoked ones included. The text of a key is never shown again. LAST USED is the hour, in UTC.',
    )
    .option('--account <account>', 'only those of this account', nameOf)
    .action((flags: ListFlags) => listKeys(context, flags));
  withOutput(withRedisUrl(list));

  const revoke = keys
    .command('revoke')
    .summary('revoke a key, at once and everywhere')
    .description('Revokes a key, at once and everywhere. Revoking it again changes nothing.')
    .argument('<keyId>', 'as shown by create and list')
    .action((keyId: string, flags: KeysFlags) => revokeKey(context, keyId, flags));
  withOutput(withRedisUrl(revoke));
}

async function createKey(context: CommandContext, flags: CreateFlags): Promise<void> {
  const { account, role, name: accountName, expiresAt: end } = flags;
  const now = context.now();
  if (end !== undefined && end <= now.getTime()) throw usageError('--expires-at must lie in the future');
  const clientId = flags.client ?? `client_${randomBytes(9).toString('hex')}`;
  const wanted = { account, accountName, role, clientId, expiresAt: end === undefined ? undefined : new Date(end) };
  const { keyId, key, expiresAt } = await withKeys(context, flags, (keys) => keys.create(wanted, now)).catch(
    (error) => {
      throw error instanceof TooManyApiKeys ? new CommandError(error.message) : error;
    },
  );
  const result = { keyId, clientId, account, role, ...(expiresAt !== undefined && { expiresAt }), key };
  const text = [...fieldLines(Object.entries(result)), '', 'Keep the key now: it is not shown again.'];
  printResult(context, flags, result, text.join('\n'));
}

async function listKeys(context: CommandContext, flags: ListFlags): Promise<void> {
  const all = await withKeys(context, flags, (keys) => keys.list(), context);
  const items = all.filter(({ account }) => flags.account === undefined || account === flags.account);
  const result = items.map(({ keyId, clientId, account, role, createdAt, expiresAt, lastUsedAt, revokedAt }) => ({
    ...{ keyId, clientId, account, role, createdAt },
    expiresAt: expiresAt ?? null,
    lastUsedAt: lastUsedAt ?? null,
    revokedAt: revokedAt ?? null,
  }));
  printList(context, flags, { columns: COLUMNS, items, none: 'No keys.' }, result);
}

async function revokeKey(context: CommandContext, keyId: string, flags: KeysFlags): Promise<void> {
  const revoke = async (keys: ApiKeyStore) => {
    await keys.revoke(keyId, context.now());
    return keys.find(keyId);
  };
  const revoked = await withKeys(context, flags, revoke, context);
  if (!revoked) throw new CommandError(`there is no key ${keyId}; "meterline keys list" shows the ids`);
  printResult(context, flags, { keyId, revokedAt: revoked.revokedAt }, `Revoked ${keyId}.`);
}

async function withKeys<T>(
  { settings }: CommandContext,
  flags: KeysFlags,
  work: (keys: ApiKeyStore) => Promise<T>,
  warnings?: CommandContext,
): Promise<T> {
  return withRedis(await settings.redisUrl(flags), (redis) => work(new ApiKeyStore(redis)), warnings);
}
