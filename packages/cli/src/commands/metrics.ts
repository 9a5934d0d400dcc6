import { type Command, Option } from 'commander';
import type { CommandContext } from '../command.js';
import { withAccount, withAllAccounts, withClientErrors } from '../connections/api.js';
import { usageError } from '../failure.js';
import { wholeNumber, withApiFlags } from '../flags.js';
import type { Request } from '../metrics/pages.js';
import { printCsv, printJson, printTable, readTable } from '../metrics/print.js';
import { type QueryFlags, queryOf, withQuery } from '../metrics/query.js';
import { watch } from '../metrics/watch.js';
import { API_SETTINGS_HELP, type ApiFlags } from '../settings.js';

interface MetricsFlags extends ApiFlags, QueryFlags {
  readonly all?: boolean;
  readonly json?: boolean;
  readonly csv?: boolean;
  readonly series?: boolean;
  readonly exact?: boolean;
  /** Seconds; true: as often as usual. */
  readonly watch?: number | true;
}

const EXAMPLES = `
Examples:
  meterline metrics --since 7d --group-by resource_type,workspace
  meterline metrics --month 2026-10 --group-by billing_dimension --compare
  meterline metrics --filter resourceType=agent --filter resourceType=job --watch
  meterline metrics --month 2026-10 --all-accounts --group-by account --all --csv > accounts.csv
  meterline metrics --month 2026-10 --group-by resource_name --all --csv > resources.csv
  meterline metrics --since 24h --json | jq .summary.totalCost`;

const DEFAULT_WATCH_SECONDS = 10;
const LONGEST_WATCH_SECONDS = 86_400;

export function addMetrics(program: Command, context: CommandContext): void {
  const command = program
    .command('metrics')
    .description(
      'Shows what an account used and what it cost, the most expensive group first. Costs are in USD; all times are UTC.\n' +
        'Amounts in the table are rounded for reading; --exact, --json and --csv give every digit. A filter ' +
        'given several times selects any of its values.',
    );
  withQuery(withApiFlags(command))
    .option('--all', 'read every page, not only the first')
    .option('--json', "print the API's answer as it is; with --all or --compare one answer a line")
    .option('--csv', 'print CSV, safe to open in a spreadsheet')
    .option('--series', 'with --csv: a line for each bucket of each group')
    .option('--exact', 'every digit of every amount in the table')
    .addOption(
      new Option(
        '--watch [seconds]',
        `ask again and again, every ${DEFAULT_WATCH_SECONDS} seconds or as often as this, until Ctrl-C`,
      ).argParser((text) => wholeNumber(text, 1, LONGEST_WATCH_SECONDS)),
    )
    .addHelpText('after', `${EXAMPLES}\n${API_SETTINGS_HELP}`)
    .action((flags: MetricsFlags) => runMetrics(context, flags));
}

async function runMetrics(context: CommandContext, flags: MetricsFlags): Promise<void> {
  requireSense(flags);
  // Before the first request, so that flags which contradict each other ask nothing.
  const query = queryOf(flags, context.now());
  const withSession = flags.allAccounts ? withAllAccounts : withAccount;
  await withSession(context, flags, async ({ client, account, access }) => {
    const { all = false, exact = false, json = false, csv = false, series = false, watch: watched } = flags;
    const request: Request = { context, client, account, query, all, isWatched: false, signal: undefined };
    if (watched === undefined) {
      if (json) return printJson(request);
      return csv ? printCsv(request, series) : printTable(request, exact);
    }
    const signal = context.interruption();
    const { stdout, environment, now } = context;
    // What --debug says would be drawn over.
    const isOnScreen = stdout.isTTY === true && environment.TERM !== 'dumb' && !flags.debug && !json;
    // The window moves along with the time: each turn asks what the flags mean then.
    const read = () =>
      withClientErrors(access, async () => {
        const turn = { ...request, query: queryOf(flags, now()), isWatched: true, signal };
        if (!json) return `${(await readTable(turn, exact)).text}\n\n`;
        await printJson(turn);
        return '';
      });
    const seconds = watched === true ? DEFAULT_WATCH_SECONDS : watched;
    await watch(context, { seconds, signal, isOnScreen, read });
  });
}

/** @throws CommandError */
function requireSense({ json, csv, series, compare, watch: watched, cursor }: MetricsFlags): void {
  if (json && csv) throw usageError('give --json or --csv, not both');
  if (series && !csv) throw usageError('--series is for --csv; --json always has the series');
  if (series && compare) throw usageError('--compare has a line for each group; leave out --series');
  if (watched !== undefined && csv)
    throw usageError('--watch shows a table, or with --json a line each time; leave out --csv');
  if (watched !== undefined && cursor)
    throw usageError('--watch begins at the first page each time; leave out --cursor');
}
