/** The `meterline catalog` command. */
import { removeDimension } from '@meterline/warehouse';
import type { Command } from 'commander';
import type { CommandContext } from '../../command.js';
import { withShards } from '../../connections/servers.js';
import { CommandError } from '../../failure.js';
import { type OutputFlags, withClickHouseFlags, withOutput } from '../../flags.js';
import { printResult } from '../../output/result.js';
import type { ClickHouseFlags } from '../../settings.js';

type RemoveFlags = ClickHouseFlags & OutputFlags;

export function addCatalog(catalog: Command, context: CommandContext): void {
  catalog.description('Manage the registered billing dimensions of the file CATALOG.');
  const remove = catalog
    .command('remove')
    .summary('Remove a dimension that has no events')
    .description(
      'Remove a registered billing dimension, so that CATALOG need not define it any more. Fails if the dimension has events.\n' +
        'First stop the producers and the collector, and wait until the queue is empty, because queued events of the dimension would be rejected. ' +
        'Then stop all services, and remove the dimension from CATALOG.',
    )
    .argument('<dimension>', 'Billing dimension')
    .action((dimension: string, flags: RemoveFlags) => runRemove(context, dimension, flags));
  withOutput(withClickHouseFlags(remove));
}

async function runRemove(context: CommandContext, dimension: string, flags: RemoveFlags): Promise<void> {
  await withShards(context, flags, async (shards) => {
    const outcome = await removeDimension(shards, dimension);
    if (outcome === 'used') throw new CommandError(`${dimension} has events, so it must stay in CATALOG`);
    if (outcome === 'unknown') throw new CommandError(`${dimension} is not registered`);
    printResult(context, flags, { removed: dimension }, `Removed ${dimension}.`);
  });
}
