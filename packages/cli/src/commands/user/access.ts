/** Commands for API credentials: login, logout, whoami, and the accounts of the key. */
import { existsSync } from 'node:fs';
import { rm } from 'node:fs/promises';
import type { AccountResponse } from '@meterline/client';
import type { Command } from 'commander';
import { type CommandContext, formatCount, say } from '../../command.js';
import { openClient, withApi, withClientErrors } from '../../connections/api.js';
import { CommandError, systemErrorText, usageError } from '../../failure.js';
import { type OutputFlags, withApiFlags, withApiUrl, withOutput, withProfile } from '../../flags.js';
import { readLine } from '../../input.js';
import { printResult } from '../../output/result.js';
import { fieldLines, type ItemColumn, printList } from '../../output/table.js';
import type { Setting } from '../../setting-sources.js';
import { API_SETTINGS_HELP, type ApiFlags, keyStart, settingText } from '../../settings.js';
import { writeLogin } from '../../settings-files.js';

export function addLogin(command: Command, context: CommandContext): void {
  command
    .description(
      'Check an API key and save it in a file that only you can read (mode 0600).\n' +
        'The key is read from a prompt or standard input, never from an argument, which other users of this machine could see.',
    )
    .addHelpText(
      'after',
      `\nThe key is saved in ${context.settings.loginPath({})}; with --profile, in a file of its own.\n\nExamples:\n  meterline login --api-url https://billing.example.com --account acme\n  meterline login --profile staging --api-url https://staging.example.com`,
    )
    .action((flags: ApiFlags) => login(context, flags));
  withApiFlags(command, 'Default account of the login (default: the only account of the key)');
}

async function login(context: CommandContext, flags: ApiFlags): Promise<void> {
  const url = await context.settings.apiUrl(flags);
  if (flags.apiUrl === undefined)
    say(context, `Logging in to ${url.value} (from ${url.source}); use --api-url for another address.`);
  const apiUrl = url.value;
  const apiKey = await readKey(context);
  const key: Setting = { value: apiKey, kind: 'flag', source: 'your input' };
  const client = openClient(context, flags, url, key);
  const accounts = await withClientErrors({ url, key }, () => client.accounts());
  const account = flags.account ?? (accounts.length === 1 ? accounts[0]?.id : undefined);
  const rights = rightsOf(accounts).join(', ') || 'in no account';
  if (account !== undefined && !accounts.some(({ id }) => id === account)) {
    throw usageError(`the key has no access to account ${account}; it is ${rights}`);
  }
  const path = context.settings.loginPath(flags);
  await writeLogin(path, { apiUrl, apiKey, account });
  say(context, `Logged in to ${apiUrl}: ${rights}. The key is saved in ${path}.`);
  await sayOverrides(context, flags, apiUrl);
}

/** Returns one text per account, such as `admin of acme`. For a key of all accounts, returns one text, such as `operator of all accounts (3)`. */
function rightsOf(accounts: readonly AccountResponse[]): string[] {
  const [ofAll] = accounts.filter(({ role }) => role === 'operator' || role === 'provisioner');
  if (ofAll) return [`${ofAll.role} of all accounts (${formatCount(accounts.length)})`];
  return accounts.map(({ id, role }) => `${role} of ${id}`);
}

async function sayOverrides(context: CommandContext, { profile }: ApiFlags, apiUrl: string): Promise<void> {
  if (profile !== undefined) return say(context, `Use it with --profile ${profile}, or set METERLINE_PROFILE.`);
  const { url, key, account } = await context.settings.api({});
  if (url.value !== apiUrl) {
    say(context, `Commands here use ${url.value} (from ${url.source}); use --api-url ${apiUrl} for this login.`);
  }
  for (const setting of [key, account]) {
    if (setting?.kind === 'environment') {
      say(context, `${setting.source} is set and overrides the login; unset it to use the login.`);
    }
  }
}

async function readKey({ stdin, stderr }: CommandContext): Promise<string> {
  if (stdin.isTTY) stderr.write('API key: ');
  const key = await readLine(stdin, true);
  if (stdin.isTTY) stderr.write('\n');
  if (/^[\x21-\x7e]+$/.test(key)) return key;
  throw usageError('invalid API key: enter one line of visible ASCII characters');
}

export function addLogout(command: Command, context: CommandContext): void {
  command
    .description(
      'Remove the API key that "meterline login" saved. The key stays valid; to revoke it, use "meterline keys revoke".',
    )
    .action((flags: ApiFlags) => logout(context, flags));
  withProfile(command);
}

async function logout(context: CommandContext, flags: ApiFlags): Promise<void> {
  const path = context.settings.loginPath(flags);
  const existed = existsSync(path);
  await rm(path, { force: true }).catch((cause) => {
    throw new CommandError(`cannot remove ${path}: ${systemErrorText(cause) ?? cause}`, undefined, { cause });
  });
  say(context, existed ? `Logged out: removed ${path}.` : `You were not logged in: ${path} does not exist.`);
}

type ReadFlags = ApiFlags & OutputFlags;

export function addWhoami(command: Command, context: CommandContext): void {
  command
    .description(
      'Show the API address, key and account that commands use here, the source of each (flag, environment, login file, ' +
        'local stack or default), and the access rights of the key. If the API cannot be called, show the settings only.',
    )
    .addHelpText('after', API_SETTINGS_HELP)
    .action((flags: ReadFlags) => whoami(context, flags));
  withOutput(withApiFlags(command));
}

/** Prints the settings even if the request fails, because a wrong setting may be the cause of the failure. */
async function whoami(context: CommandContext, flags: ReadFlags): Promise<void> {
  const access = await context.settings.api(flags);
  const { profile, url, key, account } = access;
  const [response] = await Promise.allSettled([withApi(context, flags, ({ client }) => client.accounts())]);
  const accounts = response.status === 'fulfilled' ? response.value : undefined;
  const result = {
    profile: profile?.value ?? null,
    apiUrl: url.value,
    apiUrlFrom: originOf(url),
    keyFrom: originOf(key),
    account: account?.value ?? null,
    accountFrom: originOf(account),
    accounts: accounts?.map(({ id, role }) => ({ id, role })) ?? null,
  };
  const only = accounts?.length === 1 ? accounts[0] : undefined;
  const text = fieldLines([
    ...(profile ? [['Profile', settingText(profile)] as const] : []),
    ['API', settingText(url)],
    ['Key', key ? settingText({ ...key, value: keyStart(key.value) }) : 'none'],
    ['Account', account ? settingText(account) : only ? `${only.id} (the key's only account)` : 'none'],
    ...rightsOf(accounts ?? []).map((right) => ['', right] as const),
  ]);
  printResult(context, flags, result, text.join('\n'));
  const stack = await context.settings.unusedStack(access);
  if (stack) say(context, `A local stack is running but not used; use --api-url ${stack.value} for it.`);
  if (response.status === 'rejected') throw response.reason;
}

function originOf(setting: Setting | undefined): Pick<Setting, 'kind' | 'source'> | null {
  return setting ? { kind: setting.kind, source: setting.source } : null;
}

const COLUMNS: readonly ItemColumn<AccountResponse>[] = [
  { heading: 'ACCOUNT', cell: ({ id }) => id, minWidth: 8 },
  { heading: 'NAME', cell: ({ name }) => name, minWidth: 8 },
  { heading: 'ROLE', cell: ({ role }) => role },
  { heading: 'CREATED', cell: ({ createdAt }) => createdAt ?? '-' },
];

export function addAccounts(command: Command, context: CommandContext): void {
  command
    .description(
      'List the accounts that your API key can access. Admins of an account can group and filter by workspace; members see ' +
        'the account as a whole.',
    )
    .addHelpText('after', API_SETTINGS_HELP)
    .action((flags: ReadFlags) => listAccounts(context, flags));
  withOutput(withApiUrl(command));
}

async function listAccounts(context: CommandContext, flags: ReadFlags): Promise<void> {
  const items = await withApi(context, flags, ({ client }) => client.accounts());
  printList(context, flags, { columns: COLUMNS, items, none: 'No accounts.' }, items, [
    'id',
    'name',
    'role',
    'createdAt',
  ]);
}
