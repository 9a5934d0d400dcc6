import { createInterface } from 'node:readline';
import { Writable } from 'node:stream';
import type { Command } from 'commander';
import { type CommandContext, CommandError, say, systemErrorCode, usageError } from '../command.js';
import { openClient, withClientErrors } from '../connections/api.js';
import { withApiFlags } from '../flags.js';
import type { ApiFlags } from '../settings/api-settings.js';
import { writeConfigFile } from '../settings/saved-files.js';
import { canonicalUrl, type Setting } from '../settings/settings.js';

export function addCommand(program: Command, context: CommandContext): void {
  const command = program
    .command('login')
    .description(
      'Keeps an API key for later calls, in a file that only you can read (mode 0600), after trying it.\n' +
        'The key is asked for, or read from standard input: it is never an argument, which others on this machine could see.',
    )
    .addHelpText(
      'after',
      `\nThe file is ${context.configFile} (METERLINE_CONFIG names another).\n\nExample:\n  meterline login --api-url https://billing.example.com --account acme`,
    )
    .action((flags: ApiFlags) => login(context, flags));
  withApiFlags(command);
}

async function login(context: CommandContext, flags: ApiFlags): Promise<void> {
  const { url } = await context.apiSettings.access(flags);
  if (flags.apiUrl === undefined)
    say(context, `The API is ${url.value} (from ${url.source}); --api-url names another.`);
  const apiUrl = canonicalUrl(url);
  const apiKey = await readKey(context);
  const key: Setting = { value: apiKey, kind: 'flag', source: 'what you have just given' };
  const client = openClient(context, flags, { ...url, value: apiUrl }, key);
  const accounts = await withClientErrors({ url, key }, () => client.accounts());
  const account = flags.account ?? (accounts.length === 1 ? accounts[0]?.id : undefined);
  if (account !== undefined && !accounts.some(({ id }) => id === account)) {
    throw usageError(
      `the key does not belong to ${account}; it belongs to ${accounts.map(({ id }) => id).join(', ') || 'none'}`,
    );
  }
  try {
    await writeConfigFile(context.configFile, { apiUrl, apiKey, ...(account !== undefined && { account }) });
  } catch (error) {
    throw new CommandError(`cannot write ${context.configFile}: ${systemErrorCode(error) ?? error}`, undefined, {
      cause: error,
    });
  }
  const whose = accounts.map(({ id, role }) => `${role} of ${id}`).join(', ') || 'in no account';
  say(context, `Logged in to ${apiUrl}: ${whose}. The key is in ${context.configFile}.`);
  await sayIfAnotherIsPreferred(context, apiUrl);
}

/** A variable goes before what login keeps. */
async function sayIfAnotherIsPreferred(context: CommandContext, apiUrl: string): Promise<void> {
  const { url } = await context.apiSettings.access({});
  if (url.value === apiUrl) return;
  say(context, `Here, ${url.value} (from ${url.source}) comes before it; name yours with --api-url ${apiUrl}.`);
}

/** One line; what is typed at a terminal is not shown. */
async function readKey({ stdin, stderr }: CommandContext): Promise<string> {
  const isTerminal = stdin.isTTY === true;
  if (isTerminal) stderr.write('API key: ');
  const silence = new Writable({ write: (_chunk, _encoding, done) => done() });
  const lines = createInterface({ input: stdin, output: silence, terminal: isTerminal });
  try {
    for await (const line of lines) {
      const key = line.trim();
      if (/^[\x21-\x7e]+$/.test(key)) return key;
      break;
    }
  } finally {
    lines.close();
    if (isTerminal) stderr.write('\n');
  }
  throw usageError('no API key was given: one line of visible ASCII characters is expected');
}
