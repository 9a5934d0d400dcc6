import { counted } from '@meterline/catalog';
import type { Command } from 'commander';
import { type CommandContext, formatCount, printResult, say } from '../command.js';
import { type EmissionTally, emitLines, emptyTally, onlyChecked, toCollector } from '../emission.js';
import { CommandError, EXIT_CODES } from '../failure.js';
import { type JsonFlag, nameOf, withBatch, withJson } from '../flags.js';
import { openEventSource } from '../input.js';

interface EmitFlags extends JsonFlag {
  readonly url?: string;
  readonly batch: number;
  readonly account?: string;
  readonly check?: boolean;
  readonly dryRun?: boolean;
}

const HARMLESS = 'Sending the file again is harmless: an event that is sent twice counts once.';

export function addEmit(program: Command, context: CommandContext): void {
  const command = program
    .command('emit')
    .description(
      'Sends usage events to a collector: one JSON object per line, as it is. The file is streamed, so it may have any size.\n' +
        'The collector is the one of --url, else COLLECTOR_URL, else of a local stack that runs here; the key is in ' +
        'METERLINE_EMITTER_KEY, else that of the local stack. Lines that break a rule are not accepted; they are reported at the end ' +
        `with their numbers, and the exit code is 5. The others are.\n${HARMLESS}`,
    )
    .argument('<file>', 'a JSON Lines file, or - for standard input')
    .option('--url <url>', 'the collector (else COLLECTOR_URL, a running local stack, http://127.0.0.1:8081)')
    .option('--account <account>', 'the account of events that name none', nameOf)
    .option('--check', 'check every line here and send nothing')
    .option('--dry-run', 'let the collector check every line, and keep nothing')
    .action((path: string, flags: EmitFlags) => runEmit(context, path, flags));
  withJson(withBatch(command));
}

async function runEmit(context: CommandContext, path: string, flags: EmitFlags): Promise<void> {
  const { check = false, dryRun = false, batch: batchSize } = flags;
  const collector = check ? undefined : await context.settings.collector(flags.url);
  const signal = context.interruption();
  const account = flags.account ?? context.environment.METERLINE_ACCOUNT;
  const send = collector ? toCollector(collector, { account, isTrial: dryRun, signal }) : onlyChecked(context.now);
  const isTrial = check || dryRun;
  const { name, input } = await openEventSource(path, context.stdin, signal);
  const tally = emptyTally();
  try {
    await emitLines({ input, send, batchSize, signal }, tally);
  } catch (error) {
    reportBadLines(context, name, tally);
    if (!isTrial) say(context, `${progress(tally)} before the failure. ${HARMLESS}`);
    throw error;
  } finally {
    input.destroy();
  }
  reportBadLines(context, name, tally);
  const { events, jobs, lastSentLine, badLines, listedBadLines } = tally;
  const result = { badLines, listedBadLines, interrupted: signal.aborted };
  if (isTrial)
    printResult(context, flags.json, { validEvents: events, ...result }, `${counted(events, 'valid event')}.`);
  else printResult(context, flags.json, { events, jobs, lastSentLine, ...result }, `${progress(tally)}.`);
  if (signal.aborted) throw new CommandError(`interrupted. ${HARMLESS}`);
  if (badLines === 0) return;
  const rejected = `${counted(badLines, 'line')} rejected${isTrial ? '' : ' by the collector'}`;
  throw new CommandError(rejected, EXIT_CODES.rejected);
}

function progress({ events, jobs, lastSentLine }: EmissionTally): string {
  return `Sent ${counted(events, 'event')} in ${counted(jobs, 'job')}, up to line ${formatCount(lastSentLine)}`;
}

function reportBadLines(context: CommandContext, name: string, { badLines, listedBadLines }: EmissionTally): void {
  const listed = listedBadLines.toSorted((a, b) => a.line - b.line);
  for (const { line, message } of listed) say(context, `${name}:${line}: ${message}`);
  const others = badLines - listed.length;
  if (others > 0) say(context, `${name}: and ${counted(others, 'more bad line')}`);
}
