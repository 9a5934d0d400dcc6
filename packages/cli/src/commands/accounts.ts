import type { Command } from 'commander';
import { type CommandContext, printResult } from '../command.js';
import { withApi } from '../connections/api.js';
import { type JsonFlag, withApiUrl, withJson } from '../flags.js';
import { layoutFor, textTable } from '../output/table.js';
import { API_SETTINGS_HELP, type ApiFlags } from '../settings/api-settings.js';

type AccountsFlags = ApiFlags & JsonFlag;

const COLUMNS = [
  { heading: 'ACCOUNT', least: 8 },
  { heading: 'NAME', least: 8 },
  { heading: 'ROLE' },
  { heading: 'CREATED' },
];

export function addCommand(program: Command, context: CommandContext): void {
  const command = program
    .command('accounts')
    .description(
      'Lists the accounts that your key belongs to. An admin of an account may group and filter by workspace; a member sees ' +
        'the account as a whole.',
    )
    .addHelpText('after', API_SETTINGS_HELP)
    .action((flags: AccountsFlags) => listAccounts(context, flags));
  withJson(withApiUrl(command));
}

async function listAccounts(context: CommandContext, flags: AccountsFlags): Promise<void> {
  const accounts = await withApi(context, flags, ({ client }) => client.accounts());
  const rows = accounts.map(({ id, name, role, createdAt }) => ({ cells: [id, name, role, createdAt ?? '-'] }));
  const text = rows.length === 0 ? 'No accounts.' : textTable(COLUMNS, rows, layoutFor(context));
  printResult(context, flags.json, accounts, text);
}
