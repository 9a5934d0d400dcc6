import type { Command } from 'commander';
import { type CommandContext, printResult } from '../command.js';
import { withAccount } from '../connections/api.js';
import { type JsonFlag, withApiFlags, withJson } from '../flags.js';
import { type WindowFlags, windowOf, withWindow } from '../metrics/query.js';
import { API_SETTINGS_HELP, type ApiFlags } from '../settings/api-settings.js';

type ResourceTypesFlags = ApiFlags & WindowFlags & JsonFlag;

export function addCommand(program: Command, context: CommandContext): void {
  const command = program
    .command('resource-types')
    .description('Lists the resource types with at least one event in a window.')
    .addHelpText('after', API_SETTINGS_HELP)
    .action((flags: ResourceTypesFlags) => listResourceTypes(context, flags));
  withJson(withWindow(withApiFlags(command)));
}

async function listResourceTypes(context: CommandContext, flags: ResourceTypesFlags): Promise<void> {
  const window = windowOf(flags, context.now());
  const types = await withAccount(context, flags, (client, account) => client.resourceTypes(account, window));
  printResult(context, flags.json, types, types.length === 0 ? 'Nothing was used in this window.' : types.join('\n'));
}
