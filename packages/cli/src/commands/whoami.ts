import type { Command } from 'commander';
import { type CommandContext, printResult } from '../command.js';
import { withApi } from '../connections/api.js';
import { type JsonFlag, withApiFlags, withJson } from '../flags.js';
import { printable } from '../output/table.js';
import { API_SETTINGS_HELP, type ApiFlags } from '../settings/api-settings.js';

type WhoamiFlags = ApiFlags & JsonFlag;

/** Of a key: its kind and the beginning of its id, which is no secret. */
const SHOWN_CHARACTERS = 10;

export function addCommand(program: Command, context: CommandContext): void {
  const command = program
    .command('whoami')
    .description(
      'Shows which API and which key a command would use here, where they come from, and what the key may read.',
    )
    .addHelpText('after', API_SETTINGS_HELP)
    .action((flags: WhoamiFlags) => whoami(context, flags));
  withJson(withApiFlags(command));
}

async function whoami(context: CommandContext, flags: WhoamiFlags): Promise<void> {
  await withApi(context, flags, async ({ client, access: { url, key, account } }) => {
    const accounts = (await client.accounts()).map(({ id, role }) => ({ id, role }));
    const result = {
      apiUrl: url.value,
      apiUrlFrom: url.source,
      keyFrom: key?.source ?? null,
      account: account?.value ?? null,
      accountFrom: account?.source ?? null,
      accounts,
    };
    const text = [
      `API      ${url.value} (from ${url.source})`,
      `Key      ${key?.value.slice(0, SHOWN_CHARACTERS)}… (from ${key?.source})`,
      `Account  ${account ? `${printable(account.value)} (from ${account.source})` : 'none named'}`,
      ...accounts.map(({ id, role }) => `         ${role} of ${printable(id)}`),
    ];
    printResult(context, flags.json, result, text.join('\n'));
  });
}
