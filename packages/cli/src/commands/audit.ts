import { counted, END_OF_TIME, type EpochMs, formatTimestamp } from '@meterline/catalog';
import { type AuditResult, auditCells } from '@meterline/operations/audit';
import { renewStampsWith } from '@meterline/operations/renewed-stamps';
import type { Command } from 'commander';
import { type CommandContext, CommandError, formatCount, printResult, say, usageError } from '../command.js';
import { withShards } from '../connections/clickhouse.js';
import { withRedis } from '../connections/redis.js';
import { instantOf, type JsonFlag, nameOf, withClickHouseFlags, withJson, withRedisUrl } from '../flags.js';
import { withProgress } from '../output/progress.js';
import { shortened, textTable } from '../output/table.js';
import type { ClickHouseFlags, RedisFlags } from '../settings/settings.js';

interface AuditFlags extends ClickHouseFlags, RedisFlags, JsonFlag {
  readonly account?: string;
  readonly from?: EpochMs;
  readonly to?: EpochMs;
  readonly repair?: boolean;
}

/** Of a text for people; --json has all. */
const MAX_LINES = 50;
const COLUMNS = ['GRAIN', 'BUCKET', 'ACCOUNT', 'PART', 'EVENTS', 'USAGE', 'COST (TRUTH / CELL)'].map((heading) => ({
  heading,
}));

export function addCommand(program: Command, context: CommandContext): void {
  const command = program
    .command('audit')
    .description(
      'Compares every sealed cell of usage_hourly and usage_daily with the events behind it: each group, its usage, cost ' +
        'and number of events, and the version of the cell. Prints what differs and exits with 1 if anything does. ' +
        'Events that arrive meanwhile are no difference: what differs is compared again before it is reported.\n' +
        'With --repair it computes those cells again, and exits with 1 only if some still differ. Reads every event of the ' +
        'window; it may be stopped at any time.',
    )
    .option('--account <account>', 'only this account', nameOf)
    .option('--from <time>', 'from this time on, such as 2026-10-01T00:00:00Z (else everything)', instantOf)
    .option('--to <time>', 'before this time (else everything)', instantOf)
    .option('--repair', 'compute the cells that differ again')
    .action((flags: AuditFlags) => runAudit(context, flags));
  withJson(withRedisUrl(withClickHouseFlags(command)));
}

async function runAudit(context: CommandContext, flags: AuditFlags): Promise<void> {
  const { account, from = 0, to = END_OF_TIME, repair = false, json } = flags;
  if (from >= to) throw usageError('--to must be after --from');
  const signal = context.interruption();
  const window = { startTime: from, endTime: to };
  const redisUrl = await context.settings.redisUrl(flags);
  const renewStamps = renewStampsWith((work) => withRedis(redisUrl, work));
  const found = await withShards(await context.settings.clickhouse(flags), (shards) =>
    withProgress(
      context,
      (days) => `Auditing ${counted(days, 'day')}`,
      (onProgress) =>
        auditCells({
          ...{ shards, accountId: account, window, signal, onProgress },
          repair: repair ? renewStamps : undefined,
        }),
    ),
  );
  const { days, comparedFrom, differences, stillDifferent } = found;
  const result = {
    days,
    ...(comparedFrom !== undefined && { comparedFrom: formatTimestamp(comparedFrom) }),
    differences: differences.map(describe),
    ...(repair && { stillDifferent: stillDifferent.map(describe) }),
  };
  printResult(context, json, result, report(found, repair));
  if (comparedFrom !== undefined) {
    say(context, `What is before ${formatTimestamp(comparedFrom)} was not compared: its events have been dropped.`);
  }
  if (signal.aborted) throw new CommandError('interrupted before the end of the window');
  if (repair && stillDifferent.length > 0) throw new CommandError('some cells could not be repaired');
  if (!repair && differences.length > 0) {
    throw new CommandError('rollups differ from the events; run the command again with --repair');
  }
}

function describe({ grain, accountId, bucket, part, truth, cell }: AuditResult['differences'][number]) {
  return { grain, bucket: formatTimestamp(bucket), account: accountId, part, truth, cell };
}

function report({ days, differences, stillDifferent }: AuditResult, repair: boolean): string {
  const checked = `Compared ${counted(days, 'day')}.`;
  if (differences.length === 0) return `${checked} Every cell agrees with its events.`;
  const rows = differences.slice(0, MAX_LINES).map(({ grain, accountId, bucket, part, truth, cell }) => ({
    cells: [
      grain,
      formatTimestamp(bucket),
      shortened(accountId, 40),
      part,
      `${formatCount(truth.events)} / ${formatCount(cell.events)}`,
      `${truth.usage} / ${cell.usage}`,
      `${truth.cost} / ${cell.cost}`,
    ],
  }));
  const more = differences.length - rows.length;
  const left = repair ? `, of which ${formatCount(stillDifferent.length)} are left` : '';
  return [
    textTable(COLUMNS, rows),
    ...(more > 0 ? [`… and ${formatCount(more)} more; --json has all`] : []),
    '',
    `${checked} ${counted(differences.length, 'difference')}${left}.`,
  ].join('\n');
}
