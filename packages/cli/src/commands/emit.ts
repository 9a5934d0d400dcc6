/** Sending a stream of JSON lines in constant memory: to a collector, or to nobody where they are only checked. */
import { promisify } from 'node:util';
import { gzip } from 'node:zlib';
import { counted, isName, isUuid, MAX_EVENTS_PER_JOB, parseUsageEvent } from '@meterline/catalog';
import { type Fetch, MeterlineClient, MeterlineError } from '@meterline/client';
import type { Command } from 'commander';
import { type CommandContext, formatCount, say, sayProgress } from '../command.js';
import { withClientErrors } from '../connections/api.js';
import { CommandError, EXIT_CODES } from '../failure.js';
import { nameOf, type OutputFlags, wholeNumber, withOutput } from '../flags.js';
import { jsonLines, openEventSource } from '../input.js';
import { printResult } from '../output/result.js';
import { printable } from '../output/table.js';
import type { CollectorSettings } from '../settings.js';

interface EmitFlags extends OutputFlags {
  readonly url?: string;
  readonly batch: number;
  readonly concurrency: number;
  readonly fromLine: number;
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
        `with their numbers, and the exit code is 5. The others are. After a failure, --from-line sends the rest.\n${HARMLESS}`,
    )
    .argument('<file>', 'a JSON Lines file, or - for standard input')
    .option('--url <url>', 'the collector (else COLLECTOR_URL, a running local stack, http://127.0.0.1:8081)')
    .option('--account <account>', 'the account of events that name none (else METERLINE_ACCOUNT)', nameOf)
    .option('--check', 'check every line here and send nothing')
    .option('--dry-run', 'let the collector check every line, and keep nothing')
    .option('--batch <n>', `events per request, at most ${MAX_EVENTS_PER_JOB}`, batchOf, 500)
    .option('--concurrency <n>', `requests at a time, at most ${MAX_CONCURRENCY}`, concurrencyOf, 4)
    .option('--from-line <n>', 'skip the lines before this one', lineOf, 1)
    .action((path: string, flags: EmitFlags) => runEmit(context, path, flags));
  withOutput(command);
}

const MAX_CONCURRENCY = 16;
const concurrencyOf = (text: string) => wholeNumber(text, 1, MAX_CONCURRENCY);
const lineOf = (text: string) => wholeNumber(text, 1, Number.MAX_SAFE_INTEGER);
const batchOf = (text: string) => wholeNumber(text, 1, MAX_EVENTS_PER_JOB);

async function runEmit(context: CommandContext, path: string, flags: EmitFlags): Promise<void> {
  const { check = false, dryRun = false } = flags;
  const collector = check ? undefined : await context.settings.collector(flags.url);
  const signal = context.interruption();
  const account = context.settings.emitAccount(flags);
  const send = collector ? toCollector(collector, account, dryRun, signal) : onlyChecked(context.now, account);
  const isTrial = check || dryRun;
  const { name, input } = await openEventSource(path, context.stdin, signal);
  const tally = new Tally(flags.fromLine);
  const onProgress = () => sayProgress(context, tally.progress(isTrial));
  try {
    await emitLines(input, send, flags, tally, signal, onProgress).finally(() => sayProgress(context, ''));
  } catch (error) {
    reportBadLines(context, name, tally);
    if (!isTrial) say(context, `${tally.progress()}. ${tally.resumption()}`);
    throw error;
  } finally {
    input.destroy();
  }
  reportBadLines(context, name, tally);
  const { events, lastLine, lastSentLine, badLines, listedBadLines } = tally;
  if (flags.fromLine > lastLine + 1 && !signal.aborted) {
    throw new CommandError(`${name} ends with line ${lastLine}, before --from-line ${flags.fromLine}`);
  }
  const outcome = { badLines, listedBadLines, interrupted: signal.aborted };
  const result = isTrial ? { validEvents: events, ...outcome } : { events, lastSentLine, ...outcome };
  printResult(context, flags, result, `${tally.progress(isTrial)}.`);
  if (signal.aborted) throw new CommandError(`interrupted. ${isTrial ? 'Nothing was sent.' : tally.resumption()}`);
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
  /** Of the lines that were read and are not blank. */
  lastLine = 0;
  /** Every line up to this one is sent or rejected. */
  lastSentLine: number;
  badLines = 0;
  readonly listedBadLines: { readonly line: number; readonly message: string }[] = [];
  /** The batches whose requests are in flight, and those that ended before an earlier one, in the order of the file. */
  readonly #batches: { readonly lastLine: number; isSent: boolean }[] = [];

  constructor(readonly fromLine: number) {
    this.lastSentLine = fromLine - 1;
  }

  /** @returns to be called when the lines are sent */
  begin(lines: readonly Line[]): () => void {
    const batch = { lastLine: lines.at(-1)?.number ?? 0, isSent: false };
    this.#batches.push(batch);
    return () => {
      batch.isSent = true;
      for (let [first] = this.#batches; first?.isSent; [first] = this.#batches) {
        this.lastSentLine = first.lastLine;
        this.#batches.shift();
      }
    };
  }

  /** @param message may quote the line, whose control characters must not reach a terminal */
  reject(line: number, message: string): void {
    this.badLines += 1;
    if (this.listedBadLines.length >= LISTED_BAD_LINES) return;
    this.listedBadLines.push({ line, message: message.replace(/\p{Cc}/gu, '\uFFFD') });
  }

  progress(isTrial = false): string {
    if (isTrial) return counted(this.events, 'valid event');
    return `Sent ${counted(this.events, 'event')}, up to line ${formatCount(this.lastSentLine)}`;
  }

  resumption(): string {
    return `Go on with --from-line ${this.lastSentLine + 1}. ${HARMLESS}`;
  }
}

interface Line {
  readonly number: number;
  readonly object: object;
}

/** Sends the lines, and tells the tally what becomes of them. */
type Send = (lines: readonly Line[], tally: Tally) => Promise<void>;

/**
 * Sends every line that is an object and counts the others, with several batches in flight. An abort is not an error: it ends the emission.
 * @param tally kept up to date all along, so that it says how far things came when this rejects
 */
async function emitLines(
  input: AsyncIterable<Buffer>,
  send: Send,
  { batch: batchSize, concurrency }: EmitFlags,
  tally: Tally,
  signal: AbortSignal,
  onProgress: () => void,
): Promise<void> {
  const inFlight = new Set<Promise<void>>();
  const failures: unknown[] = [];
  let batch: Line[] = [];
  let batchBytes = 0;
  const isOver = () => signal.aborted || failures.length > 0;
  const start = async (lines: readonly Line[], onSent: () => void) => {
    try {
      await send(lines, tally);
      onSent();
      onProgress();
    } catch (error) {
      failures.push(error);
    }
  };
  const flush = async () => {
    const sending = start(batch, tally.begin(batch)).finally(() => inFlight.delete(sending));
    inFlight.add(sending);
    [batch, batchBytes] = [[], 0];
    if (inFlight.size >= concurrency) await Promise.race(inFlight);
  };
  try {
    for await (const line of jsonLines(input)) {
      tally.lastLine = line.number;
      if (line.number < tally.fromLine) continue;
      if ('problem' in line) {
        tally.reject(line.number, line.problem);
        continue;
      }
      batch.push(line);
      batchBytes += line.bytes;
      if (batch.length === batchSize || batchBytes >= MAX_BATCH_BYTES) await flush();
      if (isOver()) break;
    }
    if (!isOver() && batch.length > 0) await flush();
  } catch (error) {
    failures.push(error);
  }
  await Promise.all(inFlight);
  // An abort ends the input and the requests in flight with an error.
  if (failures.length > 0 && !signal.aborted) throw failures[0];
}

/** Holds events to the rules of the collector and the worker, but for prices, and sends them to nobody. */
function onlyChecked(now: () => Date, account: string | undefined): Send {
  return async (lines, tally) => {
    for (const { number, object } of lines) {
      const checked = parseUsageEvent(completed(object, account), now().getTime());
      if (checked.ok) tally.events += 1;
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
  const client = new MeterlineClient({ baseUrl: url.value, credential: key.value, fetch: gzippedFetch });

  return async function send(lines, tally) {
    const events = lines.map(({ object }) => ({ ...(own !== undefined && { accountId: own }), ...object }));
    const receipt = await withClientErrors({ url, key, server: 'collector' }, () =>
      client.sendEvents(events, { isTrial, signal }).catch(tooLarge),
    ).catch((error) => {
      throw located(error, lines, own);
    });
    if (!(receipt instanceof MeterlineError)) {
      for (const { index, reason, message } of receipt.rejected) {
        tally.reject(lines[index]?.number ?? 0, `${reason}: ${message}`);
      }
      tally.events += receipt.accepted;
    } else if (lines.length > 1) {
      const half = Math.ceil(lines.length / 2);
      await send(lines.slice(0, half), tally);
      await send(lines.slice(half), tally);
    } else {
      for (const { number } of lines) tally.reject(number, `too large: ${receipt.message}`);
    }
  };
}

/** Smaller bodies go as they are: compression would save no packet. */
const GZIP_BYTES = 1_024;

const gzippedFetch: Fetch = async (url, init) => {
  if (typeof init.body !== 'string' || init.body.length < GZIP_BYTES) return fetch(url, init);
  const headers = new Headers(init.headers);
  headers.set('Content-Encoding', 'gzip');
  return fetch(url, { ...init, headers, body: await promisify(gzip)(init.body) });
};

/** The failure of a request, with its lines, and their account if all are of one. @param own the account of events that name none */
function located(error: unknown, lines: readonly Line[], own: string | undefined): unknown {
  if (!(error instanceof CommandError)) return error;
  const accounts = lines.map(({ object }) => ('accountId' in object ? String(object.accountId) : own));
  const [account, ...others] = new Set(accounts);
  const whose = account !== undefined && others.length === 0 ? `account ${printable(account)}, ` : '';
  const [first, last] = [lines[0]?.number, lines.at(-1)?.number];
  const named = first === last ? `line ${first}` : `lines ${first} to ${last}`;
  return new CommandError(`${whose}${named}: ${error.message}`, error.exitCode, { cause: error });
}

function tooLarge(error: unknown): MeterlineError {
  if (error instanceof MeterlineError && error.status === 413) return error;
  throw error;
}
