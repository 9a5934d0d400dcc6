/** The `meterline export` command. */
import { type DecimalText, formatUsdExact, ZERO } from '@meterline/catalog';
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
import { type CommandContext, say } from '../../command.js';
import { type AccountSession, withAccount } from '../../connections/api.js';
import { CommandError, usageError } from '../../failure.js';
import { monthOf, nameOf, requireStarted, withApiFlags } from '../../flags.js';
import { PageProgress, type WaitingOutput, writeWhole } from '../../output/whole-output.js';
import { API_SETTINGS_HELP, type ApiFlags } from '../../settings.js';
import { warnOfTypingErrors } from '../../typing-errors.js';

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
    .summary('Export a FOCUS 1.2 data set as CSV or Parquet')
    .description(
      'Export the usage and cost of an account in a month as a FOCUS 1.2 data set, with a row per resource, billing dimension ' +
        'and day of use. The rows add up exactly to the total of "meterline metrics". The file is written once all data has been ' +
        'read, so that a failure leaves no partial file.',
    );
  withApiFlags(command)
    .addOption(
      new Option('--month <month>', 'Calendar month, such as 2026-11 (required)')
        .argParser(monthOf)
        .makeOptionMandatory(),
    )
    .addOption(
      new Option('--resolution <resolution>', 'Time span of each row').choices(FOCUS_RESOLUTIONS).default('daily'),
    )
    .addOption(new Option('--format <format>', 'File format').choices(['csv', 'parquet']).default('csv'))
    .option('--file <file>', 'Output file (default: standard output)')
    .option(
      '--provider <name>',
      'Company name for the FOCUS columns Provider, Publisher and InvoiceIssuer',
      nameOf,
      DEFAULT_PROVIDER,
    )
    .addHelpText('after', `${EXAMPLES}\n${API_SETTINGS_HELP}`)
    .action((flags: FocusFlags) => runExport(context, flags));
}

async function runExport(context: CommandContext, flags: FocusFlags): Promise<void> {
  if (flags.format === 'parquet' && flags.file === undefined && context.stdout.isTTY) {
    throw usageError('Parquet cannot be printed on a terminal: use --file <file>, or redirect the output');
  }
  requireStarted(flags.month, context.now());
  await withAccount(context, flags, async (session) => {
    const signal = context.interruption();
    const cost = await writeWhole(context, flags.file, (output) => writeMonth(context, flags, session, output, signal));
    say(context, `The rows add up to ${formatUsdExact(cost)}.`);
    if (cost === ZERO) await warnOfTypingErrors(context, session);
  });
}

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
  // The module of the Parquet writer is loaded only if it is needed.
  parquet: async (output: WaitingOutput) => (await import('../../output/parquet.js')).openParquet(output),
};
