import { counted } from '@meterline/catalog';
import { countSelected, discardRejections, type KeptRejection, selectionAt } from '@meterline/operations/rejections';
import type { Command } from 'commander';
import { type CommandContext, CommandError, formatCount, printResult, say } from '../command.js';
import { withShards } from '../connections/clickhouse.js';
import { type JsonFlag, withClickHouseFlags, withJson } from '../flags.js';
import { requireAnswer } from '../input.js';
import { type SelectionFlags, selectionOf, withFilter } from '../rejection-flags.js';
import type { ClickHouseFlags } from '../settings/settings.js';

interface DiscardFlags extends ClickHouseFlags, SelectionFlags, JsonFlag {
  readonly yes?: boolean;
  readonly dryRun?: boolean;
}

export function addDiscardCommand(rejected: Command, context: CommandContext): void {
  const command = rejected
    .command('discard')
    .summary('delete refusals for good')
    .description('Deletes refusals for good, after a typed "yes". Their events are never counted.')
    .argument('[id...]', 'as shown by list')
    .option('--all', 'all that fit the filters')
    .option('--yes', 'do not ask')
    .option('--dry-run', 'delete nothing, and print how many there are')
    .action((ids: string[], flags: DiscardFlags) => discardRejected(context, ids, flags));
  withJson(withClickHouseFlags(withFilter(command)));
}

async function discardRejected(context: CommandContext, ids: readonly string[], flags: DiscardFlags): Promise<void> {
  const asked = selectionOf(ids, flags, context.now());
  await withShards(await context.settings.clickhouse(flags), async (shards) => {
    const selection = await selectionAt(shards.whole, asked, context.now());
    const found = await countSelected(shards.whole, selection);
    const refusals = counted(found, 'refusal');
    if (flags.dryRun) {
      printResult(context, flags.json, { found }, `${refusals} would be discarded. Nothing was deleted.`);
      return;
    }
    if (found > 0 && !flags.yes) await requireAnswer(context, `Discard ${refusals} for good? Type yes:`, 'yes');
    const signal = context.interruption();
    const kept: KeptRejection[] = [];
    let discarded = 0;
    const onKept = (one: KeptRejection) => {
      kept.push(one);
      say(context, `${one.id} stays: ${one.why}`);
    };
    const onDiscarded = (count: number) => {
      discarded += count;
    };
    await discardRejections({ shards, selection, signal, onKept, onDiscarded });
    printResult(context, flags.json, { discarded, kept }, `Discarded ${formatCount(discarded)}.`);
    if (signal.aborted) throw new CommandError('interrupted; what is not discarded yet is still there');
    if (kept.length > 0) throw new CommandError(`${formatCount(kept.length)} stay, because others refer to them`);
  });
}
