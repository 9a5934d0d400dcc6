/** The `meterline emit` command. Streams a JSON Lines file to a collector, or only checks the file. Uses constant memory. */
import { promisify } from 'node:util';
import { gzip } from 'node:zlib';
import {
  ANY_UUID,
  type Checked,
  counted,
  type EpochMs,
  invalidSentId,
  isName,
  MAX_EVENTS_PER_JOB,
  parseUsageEvent,
  type UsageEvent,
} from '@meterline/catalog';
import { type Fetch, MeterlineClient, MeterlineError } from '@meterline/client';
import type { Command } from 'commander';
import { type CommandContext, formatCount, say, sayProgress } from '../../command.js';
import { withClientErrors } from '../../connections/api.js';
import { CommandError, EXIT_CODES } from '../../failure.js';
import { nameOf, type OutputFlags, wholeNumber, withOutput } from '../../flags.js';
import { jsonLines, openEventSource } from '../../input.js';
import { printResult } from '../../output/result.js';
import { printable } from '../../output/table.js';
import type { CollectorSettings } from '../../settings.js';

interface EmitFlags extends OutputFlags {
  readonly url?: string;
  readonly batch: number;
  readonly concurrency: number;
  readonly fromLine: number;
  readonly account?: string;
  readonly check?: boolean;
  readonly dryRun?: boolean;
}

const SAFE_TO_REPEAT = 'Sending the file again is safe: an event that is sent twice counts once.';

export function addEmit(command: Command, context: CommandContext): void {
  command
    .description(
      'Send usage events to a collector, one JSON object per line, unchanged. The file is streamed and can have any size.\n' +
        'The API key comes from METERLINE_EMITTER_KEY or the local stack. Invalid lines are skipped and reported at the end with ' +
        `their numbers; the exit code is then 5. To continue after a failure, use --from-line. ${SAFE_TO_REPEAT}`,
    )
    .argument('<file>', 'JSON Lines file, or - for standard input')
    .option(
      '--url <url>',
      `Collector address (default: $COLLECTOR_URL, then the local stack's, then http://127.0.0.1:8081)`,
    )
    .option('--account <account>', 'Account to use for events without accountId (default: $METERLINE_ACCOUNT)', nameOf)
    .option('--check', 'Check all lines locally and send nothing')
    .option('--dry-run', 'Let the collector check all lines without storing them')
    .option('--batch <n>', `Events per request, at most ${MAX_EVENTS_PER_JOB}`, batchOf, 500)
    .option('--concurrency <n>', `Parallel requests, at most ${MAX_CONCURRENCY}`, concurrencyOf, 4)
    .option('--from-line <n>', 'First line to send', lineOf, 1)
    .addHelpText('after', EXAMPLES)
    .action((path: string, flags: EmitFlags) => runEmit(context, path, flags));
  withOutput(command);
}

const EXAMPLES = `
Examples:
  meterline emit events.jsonl --check
  meterline emit events.jsonl --account acme`;

const MAX_CONCURRENCY = 16;
const concurrencyOf = (text: string) => wholeNumber(text, 1, MAX_CONCURRENCY);
const lineOf = (text: string) => wholeNumber(text, 1, Number.MAX_SAFE_INTEGER);
const batchOf = (text: string) => wholeNumber(text, 1, MAX_EVENTS_PER_JOB);

async function runEmit(context: CommandContext, path: string, flags: EmitFlags): Promise<void> {
  const { check = false, dryRun = false } = flags;
  const collector = check ? undefined : await context.settings.collector(flags.url);
  const signal = context.interruption();
  const account = context.settings.emitAccount(flags);
  const send = collector ? toCollector(collector, account, dryRun, signal) : checkOnly(context.now, account);
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

/** A batch of this size is sent before it has the maximum number of events, because lines may be long. */
const MAX_BATCH_BYTES = 4 * 1024 * 1024;
/** Maximum number of invalid lines to list. Further invalid lines are only counted, to limit memory. */
const LISTED_BAD_LINES = 100;

class Tally {
  /** Number of accepted events. With --check or --dry-run, the number of valid events. */
  events = 0;
  /** Number of the last line that was read and not blank. */
  lastLine = 0;
  /** All lines up to this number were sent or rejected. */
  lastSentLine: number;
  badLines = 0;
  readonly listedBadLines: { readonly line: number; readonly message: string }[] = [];
  /** Batches in file order. A sent batch stays in this list until all earlier batches are sent. */
  readonly #batches: { readonly lastLine: number; isSent: boolean }[] = [];

  constructor(readonly fromLine: number) {
    this.lastSentLine = fromLine - 1;
  }

  /** Registers a batch. Returns a function to call when the lines of the batch are sent. */
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

  /** Counts an invalid line. Control characters in the message are replaced, because the message may quote the line. */
  reject(line: number, message: string): void {
    this.badLines += 1;
    if (this.listedBadLines.length >= LISTED_BAD_LINES) return;
    this.listedBadLines.push({ line, message: printable(message) });
  }

  progress(isTrial = false): string {
    if (isTrial) return counted(this.events, 'valid event');
    // If the first request failed, there is no last line up to which all events are sent, although later requests may have succeeded.
    const upTo = this.lastSentLine < this.fromLine ? '' : `, up to line ${formatCount(this.lastSentLine)}`;
    return `Sent ${counted(this.events, 'event')}${upTo}`;
  }

  resumption(): string {
    return `Continue with --from-line ${this.lastSentLine + 1}. ${SAFE_TO_REPEAT}`;
  }
}

interface Line {
  readonly number: number;
  readonly object: object;
}

type Send = (lines: readonly Line[], tally: Tally) => Promise<void>;

/**
 * Sends all lines that are objects, with several batches in flight, and records the other lines as invalid. If the signal is aborted,
 * returns without an error.
 * @param tally updated during the run, so that it is correct even if the promise rejects
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
  const isStopped = () => signal.aborted || failures.length > 0;
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
      if (isStopped()) break;
    }
    if (!isStopped() && batch.length > 0) await flush();
  } catch (error) {
    failures.push(error);
  }
  await Promise.all(inFlight);
  // An aborted signal makes the input and the requests in flight fail. Such failures are expected.
  if (failures.length > 0 && !signal.aborted) throw failures[0];
}

/** Validates events without sending them. Applies the rules of the collector and the worker, except for prices. */
function checkOnly(now: () => Date, account: string | undefined): Send {
  return async (lines, tally) => {
    for (const { number, object } of lines) {
      const checked = checkEvent(object, account, now().getTime());
      if (checked.ok) tally.events += 1;
      else tally.reject(number, `${checked.reason}: ${checked.message}`);
    }
  };
}

/** Validates an event as the collector does. An event without an account gets the default account, and any name is valid as the ID. */
function checkEvent(object: object, account: string | undefined, now: EpochMs): Checked<UsageEvent> {
  const event = { ...(account !== undefined && { accountId: account }), ...object };
  const id = 'eventId' in object ? object.eventId : undefined;
  if (id === undefined) return parseUsageEvent(event, now);
  const checked = parseUsageEvent({ ...event, eventId: ANY_UUID }, now);
  return typeof id === 'string' && isName(id) ? checked : invalidSentId(checked);
}

/**
 * Sends events in one request, or in several requests if one would be too large.
 * @param defaultAccount the account of events that name no account
 * @param isTrial whether the collector only checks the events
 * @throws CommandError if the collector rejects the request. Some events may be in the queue then.
 * @throws the reason of the signal when it is aborted
 */
function toCollector(
  { url, key }: CollectorSettings,
  defaultAccount: string | undefined,
  isTrial: boolean,
  signal: AbortSignal,
): Send {
  const client = new MeterlineClient({ baseUrl: url.value, credential: key.value, fetch: gzippedFetch });

  return async function send(lines, tally) {
    const events = lines.map(({ object }) => ({
      ...(defaultAccount !== undefined && { accountId: defaultAccount }),
      ...object,
    }));
    const receipt = await withClientErrors({ url, key, server: 'collector' }, () =>
      client.sendEvents(events, { isTrial, signal }).catch(tooLarge),
    ).catch((error) => {
      throw located(error, lines, defaultAccount);
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

/** Smaller bodies are not compressed, because that would not save a network packet. */
const GZIP_BYTES = 1_024;

const gzippedFetch: Fetch = async (url, init) => {
  if (typeof init.body !== 'string' || init.body.length < GZIP_BYTES) return fetch(url, init);
  const headers = new Headers(init.headers);
  headers.set('Content-Encoding', 'gzip');
  return fetch(url, { ...init, headers, body: await promisify(gzip)(init.body) });
};

/** Adds the line numbers of a failed request to its error. Also adds the account if all lines have the same account. */
function located(error: unknown, lines: readonly Line[], defaultAccount: string | undefined): unknown {
  if (!(error instanceof CommandError)) return error;
  const accounts = lines.map(({ object }) => ('accountId' in object ? String(object.accountId) : defaultAccount));
  const [account, ...others] = new Set(accounts);
  const ofAccount = account !== undefined && others.length === 0 ? `account ${printable(account)}, ` : '';
  const [first, last] = [lines[0]?.number, lines.at(-1)?.number];
  const range = first === last ? `line ${first}` : `lines ${first} to ${last}`;
  return new CommandError(`${ofAccount}${range}: ${error.message}`, error.exitCode, { cause: error });
}

function tooLarge(error: unknown): MeterlineError {
  if (error instanceof MeterlineError && error.status === 413) return error;
  throw error;
}
