import { type DecimalText, formatUsdExact } from '@meterline/catalog';
import {
  DEFAULT_PROVIDER,
  exportFocus,
  FOCUS_RESOLUTIONS,
  FocusChanged,
  type FocusCharge,
  type FocusResolution,
  focusCsvHeading,
  focusCsvLines,
} from '@meterline/client/focus';
import { type Command, Option } from 'commander';
import { type CommandContext, say } from '../command.js';
import { type AccountSession, withAccount } from '../connections/api.js';
import { CommandError, usageError } from '../failure.js';
import { monthOf, monthText, nameOf, withApiFlags } from '../flags.js';
import { PageProgress, type WaitingOutput, writeWhole } from '../output/whole-output.js';
import { API_SETTINGS_HELP, type ApiFlags } from '../settings.js';

interface FocusFlags extends ApiFlags {
  readonly month: { readonly startTime: number };
  readonly resolution: FocusResolution;
  readonly format: keyof typeof OPEN;
  readonly file?: string;
  readonly provider: string;
}

const EXAMPLES = `
Examples:
  meterline export focus --account acme --month 2026-10 > acme-2026-10.csv
  meterline export focus --month 2026-10 --format parquet --file acme-2026-10.parquet`;

export function addExport(formats: Command, context: CommandContext): void {
  const command = formats
    .command('focus')
    .summary('a FOCUS 1.2 data set, as CSV or Parquet')
    .description(
      'Writes what an account used in a month, and what it cost, as a FOCUS 1.2 data set: a row for each resource, billing\n' +
        'dimension and day on which it was used. The rows add up to the figure of "meterline metrics", to the last digit.\n' +
        'Nothing is written before everything is read, so a command that fails leaves no half file.',
    );
  withApiFlags(command)
    .addOption(
      new Option('--month <month>', 'a calendar month, such as 2026-11').argParser(monthOf).makeOptionMandatory(),
    )
    .addOption(new Option('--resolution <resolution>', 'the time of a row').choices(FOCUS_RESOLUTIONS).default('daily'))
    .addOption(new Option('--format <format>', 'of the file').choices(['csv', 'parquet']).default('csv'))
    .option('--file <file>', 'where to write it (default: standard output)')
    .option('--provider <name>', 'who provides, publishes and invoices what is used', nameOf, DEFAULT_PROVIDER)
    .addHelpText('after', `${EXAMPLES}\n${API_SETTINGS_HELP}`)
    .action((flags: FocusFlags) => runExport(context, flags));
}

async function runExport(context: CommandContext, flags: FocusFlags): Promise<void> {
  if (flags.format === 'parquet' && flags.file === undefined && context.stdout.isTTY) {
    throw usageError('Parquet is not for a terminal: give --file <file>, or redirect');
  }
  const { startTime } = flags.month;
  if (startTime > context.now().getTime())
    throw usageError(`${monthText(startTime)} has not begun: nothing was used in it`);
  await withAccount(context, flags, async (session) => {
    const signal = context.interruption();
    const cost = await writeWhole(context, flags.file, (output) => writeMonth(context, flags, session, output, signal));
    say(context, `The rows add up to ${formatUsdExact(cost)}.`);
  });
}

/** @returns what the rows add up to @throws CommandError */
async function writeMonth(
  context: CommandContext,
  { month, resolution, provider, format }: FocusFlags,
  { client, account }: AccountSession,
  output: WaitingOutput,
  signal: AbortSignal,
): Promise<DecimalText> {
  const progress = new PageProgress(context, 'row');
  const open = async () => {
    progress.restart();
    await output.truncate();
    const sink = await OPEN[format](output);
    const write = (charges: readonly FocusCharge[]) => {
      progress.page(charges.length);
      return sink.write(charges);
    };
    return { ...sink, write };
  };
  try {
    const query = { account, month: month.startTime, resolution, provider };
    const { sink, cost } = await exportFocus(client, query, open, { signal });
    await sink.finish();
    return cost;
  } catch (error) {
    if (signal.aborted) throw new CommandError('interrupted; nothing was written', undefined, { cause: error });
    if (error instanceof FocusChanged) throw new CommandError(error.message, undefined, { cause: error });
    throw error;
  } finally {
    progress.end();
  }
}

const OPEN = {
  csv: async (output: WaitingOutput) => {
    await output.appendFile(focusCsvHeading());
    const write = (charges: readonly FocusCharge[]) => output.appendFile(focusCsvLines(charges));
    return { write, finish: async () => undefined };
  },
  // The Parquet writer is loaded only by those who use it.
  parquet: async (output: WaitingOutput) => (await import('../output/parquet.js')).openParquet(output),
};
