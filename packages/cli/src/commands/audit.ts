import { END_OF_TIME, type EpochMs, formatTimestamp } from '@meterline/catalog';
import type { CellDifference } from '@meterline/warehouse';
import type { Command } from 'commander';
import { CellAudit } from '../audit/cell-audit.js';
import { type CommandContext, formatCount, printResult } from '../command-context.js';
import { CommandError, usageError } from '../command-error.js';
import { withWarehouse } from '../connections/clickhouse.js';
import { startProgress } from '../progress.js';
import type { ClickHouseFlags } from '../settings/settings.js';
import { shortened, textTable } from '../text-table.js';
import { instantOf, nameOf, withClickHouseFlags, withJson } from './flags.js';

interface AuditFlags extends ClickHouseFlags {
  readonly account?: string;
  readonly from: EpochMs;
  readonly to: EpochMs;
  readonly repair?: boolean;
  readonly json?: boolean;
}

/** Of a text for people; --json has all. */
const MAX_LINES = 50;

export function addAuditCommand(program: Command, context: CommandContext): void {
  const command = program
    .command('audit')
    .description(
      'Compares every sealed cell of usage_hourly and usage_daily with the events behind it: each group, its usage, cost ' +
        'and number of events, and the version of the cell. Prints what differs and exits with 1 if anything does. ' +
        'Events that arrive meanwhile are no difference: what differs is looked at again before it is reported.\n' +
        'With --repair it computes those cells anew, and exits with 1 only if some still differ. Reads every event of the ' +
        'window; it may be stopped at any time.',
    )
    .option('--account <account>', 'only this account', nameOf)
    .option('--from <time>', 'from this time on, such as 2026-10-01T00:00:00Z (else everything)', instantOf, 0)
    .option('--to <time>', 'before this time (else everything)', instantOf, END_OF_TIME)
    .option('--repair', 'compute the cells that differ anew')
    .action((flags: AuditFlags) => runAudit(context, flags));
  withJson(withClickHouseFlags(command));
}

async function runAudit(context: CommandContext, flags: AuditFlags): Promise<void> {
  const { account, from, to, repair = false, json } = flags;
  if (from >= to) throw usageError('--to must be after --from');
  const signal = context.interruption();
  const differences: CellDifference[] = [];
  const left: CellDifference[] = [];
  let days = 0;
  await withWarehouse(await context.settings.clickhouse(flags), async (warehouse) => {
    const window = { startTime: from, endTime: to };
    const audit = await CellAudit.begin({ warehouse, accountId: account, window, signal });
    const progress = startProgress(context, `Auditing ${formatCount(audit.days.length)} days`, audit.days.length);
    try {
      for (const day of audit.days) {
        if (signal.aborted) break;
        const found = await audit.differences(day);
        differences.push(...found);
        if (repair && found.length > 0) left.push(...(await audit.repair(day, found)));
        days += 1;
        progress.update(days);
      }
    } finally {
      progress.stop();
    }
  });
  const result = {
    days,
    differences: differences.map(describe),
    ...(repair && { stillDifferent: left.map(describe) }),
  };
  printResult(context, json, result, report(days, differences, repair, left));
  if (signal.aborted) throw new CommandError('interrupted before the end of the window');
  if (repair && left.length > 0) throw new CommandError('some cells could not be repaired');
  if (!repair && differences.length > 0) {
    throw new CommandError('rollups differ from the events; run the command again with --repair');
  }
}

function describe({ grain, accountId, bucket, part, truth, cell }: CellDifference) {
  return { grain, bucket: formatTimestamp(bucket), account: accountId, part, truth, cell };
}

function report(
  days: number,
  differences: readonly CellDifference[],
  repair: boolean,
  left: readonly CellDifference[],
): string {
  const checked = `Compared ${formatCount(days)} ${days === 1 ? 'day' : 'days'}.`;
  if (differences.length === 0) return `${checked} Every cell agrees with its events.`;
  const rows = differences
    .slice(0, MAX_LINES)
    .map(({ grain, accountId, bucket, part, truth, cell }) => [
      grain,
      formatTimestamp(bucket),
      shortened(accountId, 40),
      part,
      `${formatCount(truth.events)} / ${formatCount(cell.events)}`,
      `${truth.usage} / ${cell.usage}`,
      `${truth.cost} / ${cell.cost}`,
    ]);
  const heading = ['GRAIN', 'BUCKET', 'ACCOUNT', 'PART', 'EVENTS', 'USAGE', 'COST (TRUTH / CELL)'];
  const more = differences.length - rows.length;
  return [
    textTable([heading, ...rows]),
    ...(more > 0 ? [`… and ${formatCount(more)} more; --json has all`] : []),
    '',
    `${checked} ${formatCount(differences.length)} differences${repair ? `, of which ${formatCount(left.length)} are left` : ''}.`,
  ].join('\n');
}
