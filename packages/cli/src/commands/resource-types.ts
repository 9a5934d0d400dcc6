import type { Command } from 'commander';
import { type CommandContext, printResult } from '../command.js';
import { withAccount } from '../connections/api.js';
import { type JsonFlag, withApiFlags, withJson } from '../flags.js';
import { type FilterFlags, filtersOf, withFilters } from '../metrics/filters.js';
import { type WindowFlags, windowOf, withWindow } from '../metrics/window.js';
import { API_SETTINGS_HELP, type ApiFlags } from '../settings/api-settings.js';

type ResourceTypesFlags = ApiFlags & WindowFlags & FilterFlags & JsonFlag;

export function addCommand(program: Command, context: CommandContext): void {
  const command = program
    .command('resource-types')
    .description(
      'Lists the resource types with at least one event in a window. A filter given several times selects any of its values.',
    )
    .addHelpText('after', API_SETTINGS_HELP)
    .action((flags: ResourceTypesFlags) => listResourceTypes(context, flags));
  withJson(withFilters(withWindow(withApiFlags(command))));
}

async function listResourceTypes(context: CommandContext, flags: ResourceTypesFlags): Promise<void> {
  const query = { ...windowOf(flags, context.now()).query, ...filtersOf(flags) };
  const types = await withAccount(context, flags, ({ client, account }) => client.resourceTypes(account, query));
  printResult(context, flags.json, types, types.length === 0 ? 'Nothing was used in this window.' : types.join('\n'));
}
