/** The `meterline audit` command. */
import { counted, END_OF_TIME, type EpochMs, formatTimestamp } from '@meterline/catalog';
import type { Command } from 'commander';
import { type CommandContext, formatCount } from '../../command.js';
import { withShards } from '../../connections/servers.js';
import { CommandError, usageError } from '../../failure.js';
import { nameOf, type OutputFlags, timeOf, withClickHouseFlags, withOutput } from '../../flags.js';
import { type AuditResult, auditRollups } from '../../operations/audit.js';
import { operate } from '../../operations/operation.js';
import { type ItemColumn, itemRows, shortened, textTable } from '../../output/table.js';
import type { ClickHouseFlags } from '../../settings.js';

interface AuditFlags extends ClickHouseFlags, OutputFlags {
  readonly account?: string;
  readonly from?: EpochMs;
  readonly to?: EpochMs;
  readonly repair?: boolean;
}

type Difference = AuditResult['differences'][number];

/** Maximum number of differences in the table. With --json, all differences are printed. */
const MAX_LINES = 50;
const COLUMNS: readonly ItemColumn<Difference>[] = [
  { heading: 'GRAIN', cell: ({ grain }) => grain },
  { heading: 'BUCKET', cell: ({ bucket }) => formatTimestamp(bucket) },
  { heading: 'ACCOUNT', cell: ({ accountId }) => shortened(accountId, 40) },
  { heading: 'PART', cell: ({ part }) => part },
  {
    heading: 'EVENTS',
    cell: ({ truth, rollup }) => `${formatCount(truth.events)} / ${formatCount(rollup.events)}`,
  },
  { heading: 'USAGE', cell: ({ truth, rollup }) => `${truth.usage} / ${rollup.usage}` },
  { heading: 'COST (TRUTH / ROLLUP)', cell: ({ truth, rollup }) => `${truth.cost} / ${rollup.cost}` },
];

export function addAudit(command: Command, context: CommandContext): void {
  command
    .description(
      'Compare all sealed rows of usage_hourly and usage_daily with their events: usage, cost and number of events of each group, ' +
        'and the version of the row. Print the differences and exit with 1 if there are any. Differences are checked again before ' +
        'they are reported, so events that arrive during the audit cause none.\n' +
        'With --repair, recompute rows that differ, and exit with 1 only if some still differ. The audit reads all events of the ' +
        'window and can be stopped at any time.',
    )
    .option('--account <account>', 'Account ID (default: all accounts)', nameOf)
    .option('--from <time>', 'Start time, inclusive, such as 2026-10-01T00:00:00Z (default: first event)', timeOf)
    .option('--to <time>', 'End time, exclusive (default: last sealed hour)', timeOf)
    .option('--repair', 'Recompute rollup rows that differ')
    .action((flags: AuditFlags) => runAudit(context, flags));
  withOutput(withClickHouseFlags(command));
}

async function runAudit(context: CommandContext, flags: AuditFlags): Promise<void> {
  const { account, from = 0, to = END_OF_TIME, repair = false } = flags;
  if (from >= to) throw usageError('--to must be after --from');
  const window = { startTime: from, endTime: to };
  const { differences, stillDifferent } = await withShards(context, flags, (shards) =>
    operate(context, flags, {
      label: (days) => `Auditing ${counted(days, 'day')}`,
      work: (onProgress, signal) => auditRollups({ shards, accountId: account, window, repair, signal, onProgress }),
      describe: (found) => {
        const json = resultOf(found, repair);
        return { json, text: report(found, repair), rows: json.differences };
      },
      resume: repair ? 'Run the same command again to repair the rest.' : undefined,
    }),
  );
  if (repair && stillDifferent.length > 0) throw new CommandError('some rollup rows could not be repaired');
  if (!repair && differences.length > 0) {
    throw new CommandError('rollups differ from the events; run the command again with --repair');
  }
}

function resultOf({ days, comparedFrom, differences, stillDifferent }: AuditResult, repair: boolean) {
  return {
    days,
    ...(comparedFrom !== undefined && { comparedFrom: formatTimestamp(comparedFrom) }),
    differences: differences.map(describe),
    ...(repair && { stillDifferent: stillDifferent.map(describe) }),
  };
}

function describe({ grain, accountId, bucket, part, truth, rollup }: Difference) {
  return { grain, bucket: formatTimestamp(bucket), account: accountId, part, truth, rollup };
}

function report({ days, comparedFrom, differences, stillDifferent }: AuditResult, repair: boolean): string {
  const dropped = `\nHours before ${formatTimestamp(comparedFrom ?? 0)} were not compared: their events have been dropped.`;
  const checked = `Compared ${counted(days, 'day')}.${comparedFrom === undefined ? '' : dropped}`;
  if (differences.length === 0) return `${checked} Every rollup row agrees with its events.`;
  const rows = itemRows(COLUMNS, differences.slice(0, MAX_LINES));
  const more = differences.length - rows.length;
  const left = repair ? `, ${formatCount(stillDifferent.length)} left after the repair` : '';
  return [
    textTable(COLUMNS, rows),
    ...(more > 0 ? [`… and ${formatCount(more)} more; --json has all`] : []),
    '',
    `${checked} ${counted(differences.length, 'difference')}${left}.`,
  ].join('\n');
}
