import { counted, END_OF_TIME, type EpochMs, formatTimestamp } from '@meterline/catalog';
import type { Command } from 'commander';
import { type CommandContext, formatCount } from '../command.js';
import { withShards } from '../connections/servers.js';
import { CommandError, usageError } from '../failure.js';
import { nameOf, type OutputFlags, timeOf, withClickHouseFlags, withOutput } from '../flags.js';
import { type AuditResult, auditRollups } from '../operations/audit.js';
import { operate } from '../operations/operation.js';
import { type ItemColumn, itemRows, shortened, textTable } from '../output/table.js';
import type { ClickHouseFlags } from '../settings.js';

interface AuditFlags extends ClickHouseFlags, OutputFlags {
  readonly account?: string;
  readonly from?: EpochMs;
  readonly to?: EpochMs;
  readonly repair?: boolean;
}

type Difference = AuditResult['differences'][number];

/** The most differences in a text for people; --json has all. */
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
      'Compares every sealed rollup row of usage_hourly and usage_daily with the events behind it: each group, its usage, cost ' +
        'and number of events, and the version of the rollup row. Prints what differs and exits with 1 if anything does. ' +
        'Events that arrive meanwhile are no difference: what differs is compared again before it is reported.\n' +
        'With --repair it computes those rows again, and exits with 1 only if some still differ. Reads every event of the ' +
        'window; it may be stopped at any time.',
    )
    .option('--account <account>', 'only this account', nameOf)
    .option('--from <time>', 'from this time on, such as 2026-10-01T00:00:00Z (else everything)', timeOf)
    .option('--to <time>', 'before this time (else everything)', timeOf)
    .option('--repair', 'compute the rollup rows that differ again')
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
      resume: repair ? 'Run the same command again: it repairs the rest.' : undefined,
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
  const dropped = `\nWhat is before ${formatTimestamp(comparedFrom ?? 0)} was not compared: its events have been dropped.`;
  const checked = `Compared ${counted(days, 'day')}.${comparedFrom === undefined ? '' : dropped}`;
  if (differences.length === 0) return `${checked} Every rollup row agrees with its events.`;
  const rows = itemRows(COLUMNS, differences.slice(0, MAX_LINES));
  const more = differences.length - rows.length;
  const left = repair ? `, of which ${formatCount(stillDifferent.length)} are left` : '';
  return [
    textTable(COLUMNS, rows),
    ...(more > 0 ? [`… and ${formatCount(more)} more; --json has all`] : []),
    '',
    `${checked} ${counted(differences.length, 'difference')}${left}.`,
  ].join('\n');
}
