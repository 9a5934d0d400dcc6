/** Sending a stream of JSON lines in constant memory: to a collector, or to nobody where they are only checked. */
import { counted, isName, isUuid, MAX_EVENTS_PER_JOB, parseUsageEvent } from '@meterline/catalog';
import { MeterlineClient, MeterlineError } from '@meterline/client';
import type { Command } from 'commander';
import { type CommandContext, formatCount, printResult, say } from '../command.js';
import { withClientErrors } from '../connections/api.js';
import { CommandError, EXIT_CODES } from '../failure.js';
import { type JsonFlag, nameOf, wholeNumber, withJson } from '../flags.js';
import { jsonLines, openEventSource } from '../input.js';
import type { CollectorSettings } from '../settings.js';

interface EmitFlags extends JsonFlag {
  readonly url?: string;
  readonly batch: number;
  readonly account?: string;
  readonly check?: boolean;
  readonly dryRun?: boolean;
}

const HARMLESS = 'Sending the file again is harmless: an event that is sent twice counts once.';

export function addEmit(command: Command, context: CommandContext): void {
  command
    .description(
      'Sends usage events to a collector: one JSON object per line, as it is. The file is streamed, so it may have any size.\n' +
        'The collector is the one of --url, else COLLECTOR_URL, else of a local stack that runs here; the key is in ' +
        'METERLINE_EMITTER_KEY, else that of the local stack. Lines that break a rule are not accepted; they are reported at the end ' +
        `with their numbers, and the exit code is 5. The others are.\n${HARMLESS}`,
    )
    .argument('<file>', 'a JSON Lines file, or - for standard input')
    .option('--url <url>', 'the collector (else COLLECTOR_URL, a running local stack, http://127.0.0.1:8081)')
    .option('--account <account>', 'the account of events that name none (else METERLINE_ACCOUNT)', nameOf)
    .option('--check', 'check every line here and send nothing')
    .option('--dry-run', 'let the collector check every line, and keep nothing')
    .option('--batch <n>', `events per request, at most ${MAX_EVENTS_PER_JOB}`, batchOf, 500)
    .action((path: string, flags: EmitFlags) => runEmit(context, path, flags));
  withJson(command);
}

const batchOf = (text: string) => wholeNumber(text, 1, MAX_EVENTS_PER_JOB);

async function runEmit(context: CommandContext, path: string, flags: EmitFlags): Promise<void> {
  const { check = false, dryRun = false, batch: batchSize } = flags;
  const collector = check ? undefined : await context.settings.collector(flags.url);
  const signal = context.interruption();
  const account = context.settings.emitAccount(flags);
  const send = collector ? toCollector(collector, account, dryRun, signal) : onlyChecked(context.now, account);
  const isTrial = check || dryRun;
  const { name, input } = await openEventSource(path, context.stdin, signal);
  const tally = new Tally();
  try {
    await emitLines(input, send, batchSize, tally, signal);
  } catch (error) {
    reportBadLines(context, name, tally);
    if (!isTrial) say(context, `${tally.progress()} before the failure. ${HARMLESS}`);
    throw error;
  } finally {
    input.destroy();
  }
  reportBadLines(context, name, tally);
  const { events, requests, lastSentLine, badLines, listedBadLines } = tally;
  const outcome = { badLines, listedBadLines, interrupted: signal.aborted };
  const result = isTrial ? { validEvents: events, ...outcome } : { events, requests, lastSentLine, ...outcome };
  printResult(context, flags.json, result, `${isTrial ? counted(events, 'valid event') : tally.progress()}.`);
  if (signal.aborted) throw new CommandError(`interrupted. ${HARMLESS}`);
  if (badLines === 0) return;
  throw new CommandError(`${counted(badLines, 'line')} rejected`, EXIT_CODES.rejected);
}

function reportBadLines(context: CommandContext, name: string, { badLines, listedBadLines }: Tally): void {
  const listed = listedBadLines.toSorted((a, b) => a.line - b.line);
  for (const { line, message } of listed) say(context, `${name}:${line}: ${message}`);
  const others = badLines - listed.length;
  if (others > 0) say(context, `${name}: and ${counted(others, 'more bad line')}`);
}

/** A batch is sent at this size even if it could hold more events: lines may be long. */
const MAX_BATCH_BYTES = 4 * 1024 * 1024;
/** Bad lines beyond this many are only counted: a file may have any number of them. */
const LISTED_BAD_LINES = 100;

/** How far an emission has come. */
class Tally {
  /** Events that were accepted; of those that are only checked, those that passed. */
  events = 0;
  /** Those of which the collector accepted something. */
  requests = 0;
  /** Every good line up to this one is sent, or rejected by the collector. */
  lastSentLine = 0;
  badLines = 0;
  readonly listedBadLines: { readonly line: number; readonly message: string }[] = [];

  accept(events: number): void {
    this.events += events;
    if (events > 0) this.requests += 1;
  }

  /** @param message may quote the line, whose control characters must not reach a terminal */
  reject(line: number, message: string): void {
    this.badLines += 1;
    if (this.listedBadLines.length >= LISTED_BAD_LINES) return;
    this.listedBadLines.push({ line, message: message.replace(/\p{Cc}/gu, '\uFFFD') });
  }

  progress(): string {
    const { events, requests, lastSentLine } = this;
    return `Sent ${counted(events, 'event')} in ${counted(requests, 'request')}, up to line ${formatCount(lastSentLine)}`;
  }
}

interface Line {
  readonly number: number;
  readonly object: object;
}

/** Sends the lines, and tells the tally what becomes of them. */
type Send = (lines: readonly Line[], tally: Tally) => Promise<void>;

/**
 * Sends every line that is an object and counts the others. An abort is not an error: it ends the emission between two batches.
 * @param tally kept up to date all along, so that it says how far things came when this rejects
 */
async function emitLines(
  input: AsyncIterable<Buffer>,
  send: Send,
  batchSize: number,
  tally: Tally,
  signal: AbortSignal,
): Promise<void> {
  let batch: Line[] = [];
  let batchBytes = 0;
  const flush = async () => {
    await send(batch, tally);
    tally.lastSentLine = batch.at(-1)?.number ?? tally.lastSentLine;
    [batch, batchBytes] = [[], 0];
  };
  try {
    for await (const line of jsonLines(input)) {
      if ('problem' in line) {
        tally.reject(line.number, line.problem);
        continue;
      }
      batch.push(line);
      batchBytes += line.bytes;
      if (batch.length === batchSize || batchBytes >= MAX_BATCH_BYTES) await flush();
      if (signal.aborted) return;
    }
    if (!signal.aborted && batch.length > 0) await flush();
  } catch (error) {
    // When it is aborted, the input ends with an error while nothing comes in, and so does what is being sent.
    if (!signal.aborted) throw error;
  }
}

/** Holds events to the rules of the collector and the worker, but for prices, and sends them to nobody. */
function onlyChecked(now: () => Date, account: string | undefined): Send {
  return async (lines, tally) => {
    for (const { number, object } of lines) {
      const checked = parseUsageEvent(completed(object, account), now().getTime());
      if (checked.ok) tally.accept(1);
      else tally.reject(number, `${checked.reason}: ${checked.message}`);
    }
  };
}

const ANY_UUID = '00000000-0000-0000-0000-000000000000';

/** As the collector completes an event: with the account that is meant, and a UUID in place of an id that is another text. */
function completed(object: object, account: string | undefined): object {
  const id = 'eventId' in object ? object.eventId : undefined;
  const isOtherText = typeof id === 'string' && isName(id) && !isUuid(id);
  return { ...(account !== undefined && { accountId: account }), ...object, ...(isOtherText && { eventId: ANY_UUID }) };
}

/**
 * Sends events in a request, or in several if one would be too large.
 * @param own the account of events that name none
 * @param isTrial events are checked, and none is kept
 * @throws CommandError when the collector does not take them; some may be in the queue then
 * @throws the signal's reason once it is aborted
 */
function toCollector(
  { url, key }: CollectorSettings,
  own: string | undefined,
  isTrial: boolean,
  signal: AbortSignal,
): Send {
  const client = new MeterlineClient({ baseUrl: url.value, credential: key.value });

  return async function send(lines, tally) {
    const events = lines.map(({ object }) => ({ ...(own !== undefined && { accountId: own }), ...object }));
    const receipt = await withClientErrors({ url, key, server: 'collector' }, () =>
      client.sendEvents(events, { isTrial, signal }).catch(tooLarge),
    );
    if (!(receipt instanceof MeterlineError)) {
      for (const { index, reason, message } of receipt.rejected) {
        tally.reject(lines[index]?.number ?? 0, `${reason}: ${message}`);
      }
      tally.accept(receipt.accepted);
    } else if (lines.length > 1) {
      const half = Math.ceil(lines.length / 2);
      await send(lines.slice(0, half), tally);
      await send(lines.slice(half), tally);
    } else {
      for (const { number } of lines) tally.reject(number, `too large: ${receipt.message}`);
    }
  };
}

function tooLarge(error: unknown): MeterlineError {
  if (error instanceof MeterlineError && error.status === 413) return error;
  throw error;
}
