import { counted } from '@meterline/catalog';
import type { Command } from 'commander';
import {
  type CommandContext,
  CommandError,
  EXIT_CODES,
  formatCount,
  printResult,
  say,
  usageError,
} from '../command.js';
import { sendToCollector } from '../connections/collector.js';
import { withQueue } from '../connections/redis.js';
import { type EmissionTally, emitLines, emptyTally, type Outcome } from '../emit/emission.js';
import { type JsonFlag, nameOf, withBatch, withJson, withRedisFlags } from '../flags.js';
import { type EventSource, openEventSource } from '../input.js';
import type { CollectorFlags, CollectorSettings } from '../settings/settings.js';

interface EmitFlags extends CollectorFlags, JsonFlag {
  readonly batch: number;
  readonly account?: string;
  readonly check?: boolean;
  readonly dryRun?: boolean;
}

const HARMLESS = 'Sending the file again is harmless: an event that is sent twice counts once.';

export function addCommand(program: Command, context: CommandContext): void {
  const command = program
    .command('emit')
    .description(
      'Sends usage events: one JSON object per line, as it is. The file is streamed, so it may have any size.\nWith --url, or ' +
        'METERLINE_COLLECTOR_URL, they go to a collector over HTTP, with the key in METERLINE_EMITTER_KEY, else that of a local stack ' +
        'whose collector it is. Otherwise they go to the queue, and each line is checked against the rules of an event first; the ingest ' +
        'worker checks once more, and keeps what it refuses: an event without a price, for example.\nLines that break a rule are not ' +
        `accepted; they are reported at the end with their numbers, and the exit code is 5. The others are.\n${HARMLESS}`,
    )
    .argument('<file>', 'a JSON Lines file, or - for standard input')
    .option('--url <url>', 'send to this collector (else METERLINE_COLLECTOR_URL, unless --redis-url is given)')
    .option('--account <account>', 'to a collector: the account of events that name none', nameOf)
    .option('--check', 'check every line here and send nothing')
    .option('--dry-run', 'let the collector check every line, and keep nothing')
    .action((path: string, flags: EmitFlags) => runEmit(context, path, flags));
  withJson(withRedisFlags(withBatch(command)));
}

async function runEmit(context: CommandContext, path: string, flags: EmitFlags): Promise<void> {
  const collector = flags.check ? undefined : await context.settings.collector(flags);
  if (flags.dryRun && !collector)
    throw usageError('--dry-run asks a collector: name it with --url; --check checks without one');
  const signal = context.interruption();
  const source = await openEventSource(path, context.stdin, signal);
  const tally = emptyTally();
  const isTrial = flags.check === true || flags.dryRun === true;
  try {
    const emit = flags.check ? check : collector ? collect(collector) : send;
    await emit(context, source, flags, signal, tally);
  } catch (error) {
    reportBadLines(context, source, tally);
    if (!isTrial) say(context, `${progress(tally)} before the failure. ${HARMLESS}`);
    throw error;
  } finally {
    source.input.destroy();
  }
  reportBadLines(context, source, tally);
  const { events, jobs, lastSentLine, badLines, listedBadLines } = tally;
  const faults = { badLines, listedBadLines, interrupted: signal.aborted };
  if (isTrial) {
    printResult(context, flags.json, { validEvents: events, ...faults }, `${counted(events, 'valid event')}.`);
  } else {
    printResult(context, flags.json, { events, jobs, lastSentLine, ...faults }, `${progress(tally)}.`);
  }
  if (signal.aborted) throw new CommandError(`interrupted. ${HARMLESS}`);
  if (badLines > 0) {
    const refused = `${counted(badLines, 'line')} refused${isTrial ? '' : collector ? ' by the collector' : ', not sent'}`;
    throw new CommandError(refused, EXIT_CODES.refused);
  }
}

async function send(
  context: CommandContext,
  { input }: EventSource,
  flags: EmitFlags,
  signal: AbortSignal,
  tally: EmissionTally,
): Promise<void> {
  await withQueue(context, flags, (queue) => {
    async function* sendJob(events: readonly object[]): AsyncGenerator<Outcome> {
      await queue.send(events);
      yield { accepted: events.length, refused: [] };
    }
    return emitLines(
      { input, now: context.now, send: sendJob, isChecked: true, batchSize: flags.batch, signal },
      tally,
    );
  });
}

/** The collector checks, by its own clock and prices; what it lets an event leave out may be left out. */
function collect(settings: CollectorSettings): typeof send {
  return async (
    { environment, now },
    { input },
    { account = environment.METERLINE_ACCOUNT, batch, dryRun = false },
    signal,
    tally,
  ) => {
    const options = { settings, account, isTrial: dryRun, signal };
    const send = (events: readonly object[]) => sendToCollector(events, options);
    await emitLines({ input, now, send, isChecked: false, batchSize: batch, signal }, tally);
  };
}

async function check(
  { now }: CommandContext,
  { input }: EventSource,
  flags: EmitFlags,
  signal: AbortSignal,
  tally: EmissionTally,
): Promise<void> {
  async function* pass(events: readonly object[]): AsyncGenerator<Outcome> {
    yield { accepted: events.length, refused: [] };
  }
  await emitLines({ input, now, send: pass, isChecked: true, batchSize: flags.batch, signal }, tally);
}

function progress({ events, jobs, lastSentLine }: EmissionTally): string {
  return `Sent ${counted(events, 'event')} in ${counted(jobs, 'job')}, up to line ${formatCount(lastSentLine)}`;
}

function reportBadLines(
  context: CommandContext,
  { name }: EventSource,
  { badLines, listedBadLines }: EmissionTally,
): void {
  for (const { line, message } of listedBadLines.toSorted((a, b) => a.line - b.line))
    say(context, `${name}:${line}: ${message}`);
  const others = badLines - listedBadLines.length;
  if (others > 0) say(context, `${name}: and ${counted(others, 'more bad line')}`);
}
