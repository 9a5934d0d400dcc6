import type { Command } from 'commander';
import { type CommandContext, printResult, say } from '../command.js';
import { withApi } from '../connections/api.js';
import { type JsonFlag, withApiFlags, withJson } from '../flags.js';
import { printable } from '../output/table.js';
import { API_SETTINGS_HELP, type ApiFlags } from '../settings/api-settings.js';
import { keyStart, placeText, type Setting } from '../settings/settings.js';

type WhoamiFlags = ApiFlags & JsonFlag;

export function addCommand(program: Command, context: CommandContext): void {
  const command = program
    .command('whoami')
    .description(
      'Shows which API, key and account a command would use here, where each comes from (flag, environment, login file, ' +
        'local stack or default), and what the key may read.',
    )
    .addHelpText('after', API_SETTINGS_HELP)
    .action((flags: WhoamiFlags) => whoami(context, flags));
  withJson(withApiFlags(command));
}

async function whoami(context: CommandContext, flags: WhoamiFlags): Promise<void> {
  await withApi(context, flags, async ({ client, access }) => {
    const { url, key, account } = access;
    const accounts = (await client.accounts()).map(({ id, role }) => ({ id, role }));
    const result = {
      apiUrl: url.value,
      apiUrlFrom: placeOf(url),
      keyFrom: placeOf(key),
      account: account?.value ?? null,
      accountFrom: placeOf(account),
      accounts,
    };
    const text = [
      `API      ${placeText(url)}`,
      `Key      ${key && placeText({ ...key, value: keyStart(key.value) })}`,
      `Account  ${account ? placeText({ ...account, value: printable(account.value) }) : 'none named'}`,
      ...accounts.map(({ id, role }) => `         ${role} of ${printable(id)}`),
    ];
    printResult(context, flags.json, result, text.join('\n'));
    const stack = await context.apiSettings.unusedStack(access);
    if (stack) say(context, `The local stack that runs here is not asked; --api-url ${stack.value} names it.`);
  });
}

/** Null for what there is not. */
function placeOf(setting: Setting | undefined): Pick<Setting, 'kind' | 'source'> | null {
  return setting ? { kind: setting.kind, source: setting.source } : null;
}
