/** The `meterline metrics` command. */
import { setTimeout as delay } from 'node:timers/promises';
import { type MetricsResponse, NO_ACCOUNT_PATH, readViewQuery, type ViewQuery, ZERO } from '@meterline/catalog';
import type { MeterlineClient } from '@meterline/client';
import { type Command, InvalidArgumentError, Option } from 'commander';
import { type CommandContext, say } from '../../command.js';
import { withAccount, withClientErrors } from '../../connections/api.js';
import { CommandError, EXIT_CODES, usageError } from '../../failure.js';
import { formOf, nameOf, type OutputFlags, wholeNumber, withApiFlags, withOutput } from '../../flags.js';
import { flagsWithView, type QueryFlags, queryOf, withQuery } from '../../metrics/query.js';
import { printCsv, printJson, printTable } from '../../metrics/response.js';
import { API_SETTINGS_HELP, type ApiFlags } from '../../settings.js';
import { warnOfTypingErrors } from '../../typing-errors.js';

interface MetricsFlags extends ApiFlags, QueryFlags, OutputFlags {
  readonly all?: boolean;
  readonly series?: boolean;
  /** The name of a saved view. */
  readonly view?: string;
  readonly exact?: boolean;
  /** Interval in seconds. The value `true` stands for the default interval. */
  readonly watch?: number | true;
}

const EXAMPLES = `
Examples:
  meterline metrics --since 7d --group-by resource_type,workspace
  meterline metrics --month 2026-10 --group-by billing_dimension --compare
  meterline metrics --filter resourceType=agent --filter resourceType=job --watch
  meterline metrics --month 2026-10 --all-accounts --group-by account --all --csv=excel > accounts.csv
  meterline metrics --month 2026-10 --group-by resource_name --all --csv > resources.csv
  meterline metrics --view "Agents this month" --csv
  meterline metrics --since 24h --json | jq .summary.totalCost`;

const DEFAULT_WATCH_SECONDS = 10;
const MAX_WATCH_SECONDS = 86_400;

export function addMetrics(command: Command, context: CommandContext): void {
  command.description(
    'Show what an account used and what it cost, the most expensive group first. Costs are in USD, times in UTC.\n' +
      'The table rounds amounts; --exact, --json and --csv show every digit.',
  );
  withOutput(
    withQuery(withApiFlags(command)),
    "Print the API's response as JSON; with --all or --compare, one response per line",
  )
    .addOption(
      new Option(
        '--view <name>',
        'Saved view to use: its period, groups, filters, resolution and comparison. Other flags replace these',
      )
        .argParser(viewNameOf)
        .conflicts('allAccounts'),
    )
    .option('--all', 'Read all pages, not only the first')
    .option('--series', 'With --csv: print one line per group and time bucket')
    .option('--exact', 'Show amounts in the table without rounding')
    .addOption(
      new Option(
        '--watch [seconds]',
        `Repeat the query until Ctrl-C (default: every ${DEFAULT_WATCH_SECONDS} seconds)`,
      ).argParser((text) => wholeNumber(text, 1, MAX_WATCH_SECONDS)),
    )
    .addHelpText('after', `${EXAMPLES}\n${API_SETTINGS_HELP}`)
    .action((flags: MetricsFlags) => runMetrics(context, flags));
}

async function runMetrics(context: CommandContext, flags: MetricsFlags): Promise<void> {
  rejectConflicts(flags);
  // Parse the query before the first request, so that conflicting flags fail without a request. A view is only known after a request.
  if (flags.view === undefined) queryOf(flags, context.now());
  await withAccount(context, flags, async (session) => {
    const { client, account, access } = session;
    const view = flags.view === undefined ? undefined : await readView(client, account, flags.view);
    const flagsNow = () => (view ? { ...flags, ...flagsWithView(flags, view, context.now()) } : flags);
    rejectConflicts(flagsNow());
    const { all = false, exact = false, series = false, watch: interval } = flags;
    const form = formOf(flags);
    let hasUsage = false;
    const print = async (signal?: AbortSignal) => {
      const query = queryOf(flagsNow(), context.now());
      // Free usage costs nothing, but has a group. Without groupBy, there is always one group.
      const onPage = ({ summary, data }: MetricsResponse) => {
        hasUsage ||= summary.totalCost !== ZERO || (query.groupBy.length > 0 && data.length > 0);
      };
      const request = { context, client, account, query, all, signal, onPage };
      if (form === 'json') await printJson(request);
      else if (form === 'table') await printTable(request, exact);
      else await printCsv(request, series, form === 'excel' ? 'spreadsheet' : 'plain');
    };
    if (interval === undefined) {
      await print();
      if (!hasUsage) await warnOfTypingErrors(context, session, flagsNow().filter);
      return;
    }
    const signal = context.interruption();
    // Each `print` parses the query again, because a window that ends now moves with time.
    await watch(context, interval === true ? DEFAULT_WATCH_SECONDS : interval, signal, async () => {
      await withClientErrors(access, () => print(signal));
      if (form === 'table') context.stdout.write('\n');
    });
  });
}

async function readView(client: MeterlineClient, account: string, name: string): Promise<ViewQuery> {
  const views = await client.views.list(account);
  const view = views.find((each) => each.name === name);
  if (view) return readViewQuery(new URLSearchParams(view.query));
  const names = views.map((each) => JSON.stringify(each.name)).join(', ');
  throw new CommandError(
    `account ${account} has no saved view ${JSON.stringify(name)} that you may see; its views: ${names || 'none'}`,
  );
}

function viewNameOf(text: string): string {
  if (NO_ACCOUNT_PATH.test(text)) throw new InvalidArgumentError('It must be the name of a saved view.');
  return nameOf(text);
}

function rejectConflicts({ series, compare, watch: interval, cursor, ...output }: MetricsFlags): void {
  const isCsv = ['csv', 'excel'].includes(formOf(output));
  if (series && !isCsv) throw usageError('--series needs --csv; JSON always includes the series');
  if (series && compare) throw usageError('--series and --compare cannot be combined; leave out --series');
  if (interval !== undefined && isCsv) throw usageError('--watch prints a table or JSON; leave out CSV');
  if (interval !== undefined && cursor) throw usageError('--watch always reads the first page; leave out --cursor');
}

/** Calls `print` until the signal is aborted. During an outage, reports the outage and tries again. @throws other errors of `print` */
export async function watch(
  context: Pick<CommandContext, 'stderr'>,
  seconds: number,
  signal: AbortSignal,
  print: () => Promise<void>,
): Promise<void> {
  while (!signal.aborted) {
    try {
      await print();
    } catch (error) {
      if (signal.aborted) return;
      if (!(error instanceof CommandError) || error.exitCode !== EXIT_CODES.unavailable) throw error;
      say(context, `meterline: ${error.message}; retrying in ${seconds} s`);
    }
    await delay(seconds * 1_000, undefined, { signal }).catch(() => undefined);
  }
}
