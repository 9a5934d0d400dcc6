import { setTimeout as delay } from 'node:timers/promises';
import { type Command, Option } from 'commander';
import { type CommandContext, say } from '../command.js';
import { withAccount, withClientErrors } from '../connections/api.js';
import { CommandError, EXIT_CODES, usageError } from '../failure.js';
import { formOf, type OutputFlags, wholeNumber, withApiFlags, withOutput } from '../flags.js';
import { type QueryFlags, queryOf, withQuery } from '../metrics/query.js';
import { printCsv, printJson, printTable, type Request, readTable } from '../metrics/response.js';
import { API_SETTINGS_HELP, type ApiFlags } from '../settings.js';

interface MetricsFlags extends ApiFlags, QueryFlags, OutputFlags {
  readonly all?: boolean;
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
  meterline metrics --month 2026-10 --all-accounts --group-by account --all --csv=excel > accounts.csv
  meterline metrics --month 2026-10 --group-by resource_name --all --csv > resources.csv
  meterline metrics --since 24h --json | jq .summary.totalCost`;

const DEFAULT_WATCH_SECONDS = 10;
const LONGEST_WATCH_SECONDS = 86_400;

export function addMetrics(command: Command, context: CommandContext): void {
  command.description(
    'Shows what an account used and what it cost, the most expensive group first. Costs are in USD; all times are UTC.\n' +
      'Amounts in the table are rounded for reading; --exact, --json and --csv give every digit. A filter ' +
      'given several times selects any of its values.',
  );
  withOutput(withQuery(withApiFlags(command)), "the API's response as it is; with --all or --compare one a line")
    .option('--all', 'read every page, not only the first')
    .option('--series', 'with CSV: a line for each bucket of each group')
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
  await withAccount(context, flags, async ({ client, account, access }) => {
    const { all = false, exact = false, series = false, watch: watched } = flags;
    const form = formOf(flags);
    const request: Request = { context, client, account, query, all, isWatched: false, signal: undefined };
    if (watched === undefined) {
      if (form === 'json') return printJson(request);
      if (form === 'table') return printTable(request, exact);
      return printCsv(request, series, form === 'excel' ? 'spreadsheet' : 'plain');
    }
    const signal = context.interruption();
    const { stdout, environment, now } = context;
    // What --debug says would be drawn over.
    const isOnScreen = stdout.isTTY === true && environment.TERM !== 'dumb' && !flags.debug && form === 'table';
    // The window moves along with the time: each turn asks what the flags mean then.
    const read = () =>
      withClientErrors(access, async () => {
        const turn = { ...request, query: queryOf(flags, now()), isWatched: true, signal };
        if (form === 'table') return `${(await readTable(turn, exact)).text}\n\n`;
        await printJson(turn);
        return '';
      });
    const seconds = watched === true ? DEFAULT_WATCH_SECONDS : watched;
    await watch(context, { seconds, signal, isOnScreen, read });
  });
}

/** @throws CommandError */
function requireSense({ series, compare, watch: watched, cursor, ...output }: MetricsFlags): void {
  const isCsv = ['csv', 'excel'].includes(formOf(output));
  if (series && !isCsv) throw usageError('--series is for --output csv; JSON always has the series');
  if (series && compare) throw usageError('--compare has a line for each group; leave out --series');
  if (watched !== undefined && isCsv)
    throw usageError('--watch shows a table, or with --json a line each time; leave out CSV');
  if (watched !== undefined && cursor)
    throw usageError('--watch begins at the first page each time; leave out --cursor');
}

/** Enters a screen other than the shell's, so that what stood there stays; without a cursor. */
const ENTER = '\u001b[?1049h\u001b[?25l';
const LEAVE = '\u001b[?25h\u001b[?1049l';
const TO_THE_TOP = '\u001b[H';
const CLEAR_LINE = '\u001b[K';
const CLEAR_BELOW = '\u001b[J';

type Terminal = Pick<CommandContext, 'stdout' | 'stderr' | 'now'>;

interface Watch {
  readonly seconds: number;
  /** Aborted when the person has seen enough. */
  readonly signal: AbortSignal;
  /** Draws on another screen of the terminal; else one result is printed after another. */
  readonly isOnScreen: boolean;
  /** @returns the text of the result */
  readonly read: () => Promise<string>;
}

/**
 * Shows a result again and again, until the person has seen enough. Ends without an error once the signal is aborted, and leaves
 * the last result on the terminal. A service that cannot be reached, or is busy, is asked again at the next turn.
 * @throws any other error of `read`
 */
export async function watch(context: Terminal, { seconds, signal, isOnScreen, read }: Watch): Promise<void> {
  const { stdout } = context;
  let last = '';
  if (isOnScreen) stdout.write(ENTER);
  try {
    while (!signal.aborted) {
      let problem: string | undefined;
      try {
        last = await read();
      } catch (error) {
        if (!(error instanceof CommandError) || error.exitCode !== EXIT_CODES.unavailable) throw error;
        problem = error.message;
      }
      if (isOnScreen) draw(context, last, problem, seconds);
      else if (problem !== undefined) say(context, `meterline: ${problem}; asking again in ${seconds} s`);
      else stdout.write(last);
      await delay(seconds * 1_000, undefined, { signal });
    }
  } catch (error) {
    if (!signal.aborted) throw error;
  } finally {
    if (isOnScreen) stdout.write(`${LEAVE}${last.trimEnd()}\n`);
  }
}

/** Written over what stands there, line by line, so that nothing flickers; what does not fit is counted. */
function draw({ stdout, now }: Terminal, text: string, problem: string | undefined, seconds: number): void {
  const time = now().toISOString().slice(11, 19);
  const state = problem === undefined ? `as of ${time} UTC` : `${time} UTC: ${problem.split('\n', 1)[0]}`;
  const lines = [`Every ${seconds} s, ${state}. Ctrl-C ends.`, '', ...text.trimEnd().split('\n')];
  const height = stdout.rows ?? lines.length;
  const shown =
    lines.length <= height ? lines : [...lines.slice(0, height - 1), `… ${lines.length - height + 1} more lines`];
  stdout.write(`${TO_THE_TOP}${shown.map((line) => line + CLEAR_LINE).join('\n')}${CLEAR_BELOW}`);
}
