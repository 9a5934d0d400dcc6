/** Who you are to the API: login, logout, whoami, and the accounts that you may read. */

import { existsSync } from 'node:fs';
import { rm } from 'node:fs/promises';
import type { AccountResponse } from '@meterline/client';
import type { Command } from 'commander';
import { type CommandContext, formatCount, say } from '../command.js';
import { openClient, withApi, withClientErrors } from '../connections/api.js';
import { CommandError, systemErrorText, usageError } from '../failure.js';
import { type OutputFlags, withApiFlags, withApiUrl, withOutput, withProfile } from '../flags.js';
import { readLine } from '../input.js';
import { printResult } from '../output/result.js';
import { fieldLines, type ItemColumn, printList } from '../output/table.js';
import { API_SETTINGS_HELP, type ApiFlags, keyStart, placeText, type Setting } from '../settings.js';
import { writeLogin } from '../settings-files.js';

export function addLogin(command: Command, context: CommandContext): void {
  command
    .description(
      'Keeps an API key for later calls, in a file that only you can read (mode 0600), after trying it.\n' +
        'The key is asked for, or read from standard input: it is never an argument, which others on this machine could see.',
    )
    .addHelpText(
      'after',
      `\nThe file is ${context.settings.loginPath({})}, below XDG_CONFIG_HOME where that is set.\n\nExamples:\n  meterline login --api-url https://billing.example.com --account acme\n  meterline login --profile staging --api-url https://staging.example.com`,
    )
    .action((flags: ApiFlags) => login(context, flags));
  withApiFlags(command);
}

async function login(context: CommandContext, flags: ApiFlags): Promise<void> {
  const url = await context.settings.apiUrl(flags);
  if (flags.apiUrl === undefined)
    say(context, `The API is ${url.value} (from ${url.source}); --api-url names another.`);
  const apiUrl = url.value;
  const apiKey = await readKey(context);
  const key: Setting = { value: apiKey, kind: 'flag', source: 'what you have just given' };
  const client = openClient(context, flags, url, key);
  const accounts = await withClientErrors({ url, key }, () => client.accounts());
  const account = flags.account ?? (accounts.length === 1 ? accounts[0]?.id : undefined);
  const whose = rightsOf(accounts).join(', ') || 'in no account';
  if (account !== undefined && !accounts.some(({ id }) => id === account)) {
    throw usageError(`the key has no account ${account}; it is ${whose}`);
  }
  const path = context.settings.loginPath(flags);
  await writeLogin(path, { apiUrl, apiKey, account });
  say(context, `Logged in to ${apiUrl}: ${whose}. The key is in ${path}.`);
  await sayIfAnotherIsPreferred(context, flags, apiUrl);
}

/** `admin of acme` for each account; a key of all accounts has their number. */
function rightsOf(accounts: readonly AccountResponse[]): string[] {
  const [ofAll] = accounts.filter(({ role }) => role === 'operator' || role === 'provisioner');
  if (ofAll) return [`${ofAll.role} of all accounts (${formatCount(accounts.length)})`];
  return accounts.map(({ id, role }) => `${role} of ${id}`);
}

/** A variable goes before what login keeps. */
async function sayIfAnotherIsPreferred(context: CommandContext, { profile }: ApiFlags, apiUrl: string): Promise<void> {
  if (profile !== undefined) return say(context, `Use it with --profile ${profile}, or set METERLINE_PROFILE.`);
  const url = await context.settings.apiUrl({});
  if (url.value !== apiUrl)
    say(context, `Here, ${url.value} (from ${url.source}) comes before it; name yours with --api-url ${apiUrl}.`);
  for (const name of ['METERLINE_API_KEY', 'METERLINE_ACCOUNT'] as const)
    if (context.environment[name] !== undefined)
      say(context, `Here, ${name} is set and comes before the login: unset it.`);
}

async function readKey({ stdin, stderr }: CommandContext): Promise<string> {
  if (stdin.isTTY) stderr.write('API key: ');
  const key = await readLine(stdin, true);
  if (stdin.isTTY) stderr.write('\n');
  if (/^[\x21-\x7e]+$/.test(key)) return key;
  throw usageError('no API key was given: one line of visible ASCII characters is expected');
}

export function addLogout(command: Command, context: CommandContext): void {
  command
    .description(
      'Removes the key that "meterline login" keeps. The key itself stays valid: only an admin revokes it, with ' +
        '"meterline keys revoke" or the API.',
    )
    .action((flags: ApiFlags) => logout(context, flags));
  withProfile(command);
}

async function logout(context: CommandContext, flags: ApiFlags): Promise<void> {
  const path = context.settings.loginPath(flags);
  const wasThere = existsSync(path);
  await rm(path, { force: true }).catch((cause) => {
    throw new CommandError(`cannot remove ${path}: ${systemErrorText(cause) ?? cause}`, undefined, { cause });
  });
  say(context, wasThere ? `Logged out: ${path} is removed.` : `You were not logged in: there is no ${path}.`);
}

type ReadFlags = ApiFlags & OutputFlags;

export function addWhoami(command: Command, context: CommandContext): void {
  command
    .description(
      'Shows which API, key and account a command would use here, where each comes from (flag, environment, login file, ' +
        'local stack or default), and what the key may read. Without a key, or if the API fails, it shows the settings alone.',
    )
    .addHelpText('after', API_SETTINGS_HELP)
    .action((flags: ReadFlags) => whoami(context, flags));
  withOutput(withApiFlags(command));
}

/** Prints the settings even if the request fails: a wrong setting may be the cause. */
async function whoami(context: CommandContext, flags: ReadFlags): Promise<void> {
  const access = await context.settings.api(flags);
  const { profile, url, key, account } = access;
  const [read] = await Promise.allSettled([withApi(context, flags, ({ client }) => client.accounts())]);
  const readable = read.status === 'fulfilled' ? read.value : [];
  const result = {
    profile: profile?.value ?? null,
    apiUrl: url.value,
    apiUrlFrom: placeOf(url),
    keyFrom: placeOf(key),
    account: account?.value ?? null,
    accountFrom: placeOf(account),
    accounts: read.status === 'fulfilled' ? readable.map(({ id, role }) => ({ id, role })) : null,
  };
  const text = fieldLines([
    ...(profile ? [['Profile', placeText(profile)] as const] : []),
    ['API', placeText(url)],
    ['Key', key ? placeText({ ...key, value: keyStart(key.value) }) : 'none'],
    ['Account', account ? placeText(account) : 'none named'],
    ...rightsOf(readable).map((right) => ['', right] as const),
  ]);
  printResult(context, flags, result, text.join('\n'));
  const stack = await context.settings.unusedStack(access);
  if (stack) say(context, `The local stack that runs here is not asked; --api-url ${stack.value} names it.`);
  if (read.status === 'rejected') throw read.reason;
}

/** Null for what there is not. */
function placeOf(setting: Setting | undefined): Pick<Setting, 'kind' | 'source'> | null {
  return setting ? { kind: setting.kind, source: setting.source } : null;
}

const COLUMNS: readonly ItemColumn<AccountResponse>[] = [
  { heading: 'ACCOUNT', cell: ({ id }) => id, least: 8 },
  { heading: 'NAME', cell: ({ name }) => name, least: 8 },
  { heading: 'ROLE', cell: ({ role }) => role },
  { heading: 'CREATED', cell: ({ createdAt }) => createdAt ?? '-' },
];

export function addAccounts(command: Command, context: CommandContext): void {
  command
    .description(
      'Lists the accounts that your key belongs to. An admin of an account may group and filter by workspace; a member sees ' +
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
