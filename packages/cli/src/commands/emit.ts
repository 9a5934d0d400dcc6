import { counted } from '@meterline/catalog';
import type { Command } from 'commander';
import { type CommandContext, CommandError, EXIT_CODES, formatCount, printResult, say } from '../command.js';
import { withQueue } from '../connections/redis.js';
import { type EmissionTally, emitLines, emptyTally } from '../emit/emission.js';
import { type JsonFlag, withBatch, withJson, withRedisFlags } from '../flags.js';
import { type EventSource, openEventSource } from '../input.js';
import type { RedisFlags } from '../settings/settings.js';

interface EmitFlags extends RedisFlags, JsonFlag {
  readonly batch: number;
  readonly check?: boolean;
}

const HARMLESS = 'Sending the file again is harmless: an event that is sent twice counts once.';

export function addCommand(program: Command, context: CommandContext): void {
  const command = program
    .command('emit')
    .description(
      'Sends usage events through the queue: one JSON object per line, as it is. The file is streamed, so it may have ' +
        'any size.\nEach line is checked against the rules of an event first. Those that break one are not sent; they are ' +
        'reported at the end with their numbers, and the exit code is 5. The others are sent.\nThe ingest worker checks ' +
        `once more, and keeps what it refuses: an event without a price, for example.\n${HARMLESS}`,
    )
    .argument('<file>', 'a JSON Lines file, or - for standard input')
    .option('--check', 'check every line and send nothing')
    .action((path: string, flags: EmitFlags) => runEmit(context, path, flags));
  withJson(withRedisFlags(withBatch(command)));
}

async function runEmit(context: CommandContext, path: string, flags: EmitFlags): Promise<void> {
  const signal = context.interruption();
  const source = await openEventSource(path, context.stdin, signal);
  const tally = emptyTally();
  try {
    await (flags.check ? check : send)(context, source, flags, signal, tally);
  } catch (error) {
    reportBadLines(context, source, tally);
    if (!flags.check) say(context, `${progress(tally)} before the failure. ${HARMLESS}`);
    throw error;
  } finally {
    source.input.destroy();
  }
  reportBadLines(context, source, tally);
  const { events, jobs, lastSentLine, badLines, listedBadLines } = tally;
  const faults = { badLines, listedBadLines, interrupted: signal.aborted };
  if (flags.check) {
    printResult(context, flags.json, { validEvents: events, ...faults }, `${counted(events, 'valid event')}.`);
  } else {
    printResult(context, flags.json, { events, jobs, lastSentLine, ...faults }, `${progress(tally)}.`);
  }
  if (signal.aborted) throw new CommandError(`interrupted. ${HARMLESS}`);
  if (badLines > 0) {
    const refused = `${counted(badLines, 'line')} refused${flags.check ? '' : ', not sent'}`;
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
    const sendJob = (events: readonly object[]) => queue.send(events);
    return emitLines({ input, now: context.now, send: sendJob, batchSize: flags.batch, signal }, tally);
  });
}

async function check(
  { now }: CommandContext,
  { input }: EventSource,
  flags: EmitFlags,
  signal: AbortSignal,
  tally: EmissionTally,
): Promise<void> {
  await emitLines({ input, now, send: async () => undefined, batchSize: flags.batch, signal }, tally);
}

function progress({ events, jobs, lastSentLine }: EmissionTally): string {
  return `Sent ${counted(events, 'event')} in ${counted(jobs, 'job')}, up to line ${formatCount(lastSentLine)}`;
}

function reportBadLines(
  context: CommandContext,
  { name }: EventSource,
  { badLines, listedBadLines }: EmissionTally,
): void {
  for (const { line, message } of listedBadLines) say(context, `${name}:${line}: ${message}`);
  const others = badLines - listedBadLines.length;
  if (others > 0) say(context, `${name}: and ${counted(others, 'more bad line')}`);
}
