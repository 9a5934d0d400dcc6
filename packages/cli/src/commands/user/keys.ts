/** The `meterline keys` commands. */
import { randomBytes } from 'node:crypto';
import type { EpochMs } from '@meterline/catalog';
import { KEY_ROLES, type KeyRole } from '@meterline/service/access';
import { type Command, Option } from 'commander';
import type { CommandContext } from '../../command.js';
import { type KeyFlags, type ListedKey, withKeyManager } from '../../connections/keys.js';
import { usageError } from '../../failure.js';
import { nameOf, type OutputFlags, timeOf, withApiFlags, withOutput, withRedisUrl } from '../../flags.js';
import { printResult } from '../../output/result.js';
import { fieldLines, type ItemColumn, printList } from '../../output/table.js';
import { API_SETTINGS_HELP } from '../../settings.js';

const COLUMNS: readonly ItemColumn<ListedKey>[] = [
  { heading: 'KEY', cell: ({ keyId }) => keyId },
  { heading: 'ACCOUNT', cell: ({ account }) => account ?? '(all)' },
  { heading: 'ROLE', cell: ({ role }) => role },
  { heading: 'CLIENT', cell: ({ clientId }) => clientId },
  { heading: 'CREATED', cell: ({ createdAt }) => createdAt },
  { heading: 'EXPIRES', cell: ({ expiresAt = '' }) => expiresAt },
  { heading: 'LAST USED', cell: ({ lastUsedAt = '' }) => lastUsedAt },
  { heading: 'REVOKED', cell: ({ revokedAt = '' }) => revokedAt },
];

const FIELDS = ['keyId', 'clientId', 'account', 'role', 'createdAt', 'expiresAt', 'lastUsedAt', 'revokedAt'] as const;

type KeysFlags = KeyFlags & OutputFlags;

interface CreateFlags extends KeysFlags {
  readonly role: KeyRole;
  readonly allAccounts?: boolean;
  readonly client?: string;
  readonly name?: string;
  readonly expiresAt?: EpochMs;
}

const CREATE_EXAMPLES = `
Examples:
  meterline keys create --account acme --role admin
  meterline keys create --role emitter --all-accounts
`;

const WHERE = `
After a login, or with METERLINE_API_KEY, this command uses the API and needs an admin key of the account, or a
provisioner key. Without a login, with --redis-url, and for keys for all accounts, it needs access to Redis.
${API_SETTINGS_HELP}`;

export function addKeys(keys: Command, context: CommandContext): void {
  keys.description('Create, list and revoke API keys for the query API and the collector.');

  const create = keys
    .command('create')
    .summary('Create a key')
    .description(
      'Create an API key. The first key of an account also creates the account. The key is shown only once; only a hash is stored.\n' +
        'Roles for one account: admin reads usage, including workspaces, and manages keys and alerts; member reads usage without ' +
        'workspaces; emitter only sends events.\n' +
        'Roles for all accounts: operator only reads usage; provisioner only names accounts and manages their keys; emitter with ' +
        '--all-accounts only sends events.',
    )
    .addOption(new Option('--role <role>', 'Role of the key (required)').choices(KEY_ROLES).makeOptionMandatory())
    .option('--all-accounts', 'Create an emitter key that can send events of every account')
    .option('--client <client>', 'Client ID of the key (default: a new random ID)', nameOf)
    .option('--name <name>', "Set the account's display name (default: keep it; a new account gets its ID)", nameOf)
    .option('--expires-at <time>', 'Key expiration time, such as 2027-01-01T00:00:00Z (default: never)', timeOf)
    .addHelpText('after', `${CREATE_EXAMPLES}${WHERE}`)
    .action((flags: CreateFlags) => createKey(context, flags));
  withKeyFlags(create);

  const list = keys
    .command('list')
    .summary('List keys')
    .description(
      'List the keys of an account, including revoked keys, oldest first. With access to Redis and without --account, list all keys. ' +
        'LAST USED is rounded to the hour, in UTC.',
    )
    .addHelpText('after', WHERE)
    .action((flags: KeysFlags) => listKeys(context, flags));
  withKeyFlags(list);

  const revoke = keys
    .command('revoke')
    .summary('Revoke a key')
    .description('Revoke a key with immediate effect. Revoking a key again changes nothing.')
    .argument('<keyId>', 'Key ID, from "keys create" or "keys list"')
    .addHelpText('after', WHERE)
    .action((keyId: string, flags: KeysFlags) => revokeKey(context, keyId, flags));
  withKeyFlags(revoke);
}

function withKeyFlags(command: Command): void {
  withOutput(withRedisUrl(withApiFlags(command)));
}

async function createKey(context: CommandContext, flags: CreateFlags): Promise<void> {
  const { account, role, name: accountName } = flags;
  const expiresAt = flags.expiresAt === undefined ? undefined : new Date(flags.expiresAt);
  if (expiresAt && expiresAt <= context.now()) throw usageError('--expires-at must be in the future');
  const kind = isForAllAccounts(flags) ? 'for all accounts' : 'for one account';
  const clientId = flags.client ?? `client_${randomBytes(9).toString('hex')}`;
  const created = await withKeyManager(context, flags, kind, (keys) =>
    keys.create({ account, accountName, role, clientId, expiresAt }),
  );
  const { keyId, key, account: owner, expiresAt: end } = created;
  const result = {
    ...{ keyId, clientId },
    ...(owner !== undefined && { account: owner }),
    role,
    ...(end !== undefined && { expiresAt: end }),
    key,
  };
  const text = [...fieldLines(Object.entries(result)), '', 'Save the key now: it is not shown again.'];
  printResult(context, flags, result, text.join('\n'));
}

function isForAllAccounts({ account, allAccounts = false, name, role }: CreateFlags): boolean {
  const isAlways = role === 'operator' || role === 'provisioner';
  if (allAccounts && !isAlways && role !== 'emitter') {
    throw usageError(`--all-accounts needs --role emitter; a key with the role ${role} belongs to one account`);
  }
  if (!allAccounts && !isAlways) return false;
  if (account === undefined && name === undefined) return true;
  throw usageError(
    `a key with the role ${role}${isAlways ? '' : ' and --all-accounts'} is for all accounts: leave out --account and --name`,
  );
}

async function listKeys(context: CommandContext, flags: KeysFlags): Promise<void> {
  const items = await withKeyManager(context, flags, undefined, (keys) => keys.list(flags.account));
  const result = items.map((key) => Object.fromEntries(FIELDS.map((name) => [name, key[name] ?? null])));
  printList(context, flags, { columns: COLUMNS, items, none: 'No keys.' }, result, FIELDS);
}

async function revokeKey(context: CommandContext, keyId: string, flags: KeysFlags): Promise<void> {
  const revokedAt = await withKeyManager(context, flags, undefined, (keys) => keys.revoke(keyId, flags.account));
  printResult(context, flags, { keyId, revokedAt }, `Revoked ${keyId}.`);
}
