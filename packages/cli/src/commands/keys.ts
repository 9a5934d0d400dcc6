import { randomBytes } from 'node:crypto';
import type { EpochMs } from '@meterline/catalog';
import { KEY_ROLES, type KeyRole } from '@meterline/service/access';
import { type Command, Option } from 'commander';
import type { CommandContext } from '../command.js';
import { type KeyFlags, type ListedKey, withKeyManager } from '../connections/keys.js';
import { usageError } from '../failure.js';
import { nameOf, type OutputFlags, timeOf, withApiFlags, withOutput, withRedisUrl } from '../flags.js';
import { printResult } from '../output/result.js';
import { fieldLines, type ItemColumn, printList } from '../output/table.js';
import { API_SETTINGS_HELP } from '../settings.js';

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

const WHERE = `
Once you are logged in ("meterline login", or METERLINE_API_KEY), this command asks the API and needs a key of an admin of the account, or
of a provisioner. Without a login, with --redis-url, and for keys for all accounts it needs access to Redis.
${API_SETTINGS_HELP}`;

export function addKeys(keys: Command, context: CommandContext): void {
  keys.description('API keys of the query API and the collector');

  const create = keys
    .command('create')
    .summary('create a key; its text is shown this once')
    .description(
      'Creates an API key, and with the first key of an account the account. The key itself is shown once and kept ' +
        'only as a hash.\nOf one account: an admin may group and filter by workspace, and manage keys and alerts; a member sees the ' +
        'account as a whole; an emitter may send events to the collector and read nothing.\nOf all accounts: an operator reads ' +
        'every account and changes nothing; a provisioner names accounts and manages their keys, and reads no usage; an emitter ' +
        'with --all-accounts sends events of any account.',
    )
    .addOption(new Option('--role <role>', 'what it may do').choices(KEY_ROLES).makeOptionMandatory())
    .option('--all-accounts', 'with --role emitter: it may send events of every account')
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
    .addHelpText('after', WHERE)
    .action((flags: CreateFlags) => createKey(context, flags));
  withKeyFlags(create);

  const list = keys
    .command('list')
    .summary('list keys, revoked ones included')
    .description(
      'Lists the keys of an account, or with access to Redis all keys, the oldest first, revoked ones included. The text of a key is never ' +
        'shown again. LAST USED is the hour, in UTC.',
    )
    .addHelpText('after', WHERE)
    .action((flags: KeysFlags) => listKeys(context, flags));
  withKeyFlags(list);

  const revoke = keys
    .command('revoke')
    .summary('revoke a key, at once and everywhere')
    .description('Revokes a key, at once and everywhere. Revoking it again changes nothing.')
    .argument('<keyId>', 'as shown by create and list')
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
  if (expiresAt && expiresAt <= context.now()) throw usageError('--expires-at must lie in the future');
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
  const text = [...fieldLines(Object.entries(result)), '', 'Keep the key now: it is not shown again.'];
  printResult(context, flags, result, text.join('\n'));
}

/** @throws CommandError for flags that contradict each other */
function isForAllAccounts({ account, allAccounts = false, name, role }: CreateFlags): boolean {
  const isAlways = role === 'operator' || role === 'provisioner';
  if (allAccounts && !isAlways && role !== 'emitter') {
    throw usageError(`--all-accounts is for the role emitter; a key of role ${role} is of one account`);
  }
  if (!allAccounts && !isAlways) return false;
  if (account === undefined && name === undefined) return true;
  throw usageError(
    `a key of role ${role} ${isAlways ? 'is' : 'with --all-accounts is'} for all accounts: leave out --account and --name`,
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
