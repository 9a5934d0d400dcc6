/** Sending a stream of JSON lines, in constant memory. */
import { parseUsageEvent } from '@meterline/catalog';
import { byteLines, MAX_LINE_BYTES } from '../input.js';

/** A job is sent at this size even if it could hold more events: lines may be long. */
const MAX_JOB_BYTES = 4 * 1024 * 1024;

/** Bad lines beyond this many are only counted: a file may have any number of them. */
const LISTED_BAD_LINES = 100;

export interface BadLine {
  readonly line: number;
  readonly message: string;
}

/** An event that was sent and is refused. */
export interface RefusedEvent {
  /** Its place among those that were sent together. */
  readonly index: number;
  readonly message: string;
}

/** What has become of some of the events that were sent together. */
export interface Outcome {
  readonly accepted: number;
  readonly refused: readonly RefusedEvent[];
}

/** How far an emission has come. */
export interface EmissionTally {
  /** Events that the queue or the collector has accepted; with --check and --dry-run, those that passed. */
  events: number;
  jobs: number;
  /** Every good line up to this one is sent, or refused by the collector. */
  lastSentLine: number;
  badLines: number;
  readonly listedBadLines: BadLine[];
}

export interface EmissionOptions {
  readonly input: AsyncIterable<Buffer>;
  /** For the rule that an event is not of the future. */
  readonly now: () => Date;
  /** @returns what becomes of them, as it is known */
  readonly send: (events: readonly object[]) => AsyncIterable<Outcome>;
  /** Whether the lines are checked before they are sent; otherwise whoever gets them does it. */
  readonly isChecked: boolean;
  readonly batchSize: number;
  readonly signal: AbortSignal;
}

export function emptyTally(): EmissionTally {
  return { events: 0, jobs: 0, lastSentLine: 0, badLines: 0, listedBadLines: [] };
}

/**
 * Sends every good line and counts the bad ones: those that are no event. An abort is not an error: it ends the emission between two jobs.
 * @param tally kept up to date all along, so that it says how far things came when this rejects
 */
export async function emitLines(
  { input, now, send, isChecked, batchSize, signal }: EmissionOptions,
  tally: EmissionTally,
): Promise<void> {
  let batch: object[] = [];
  let batchBytes = 0;
  let batchLines: number[] = [];
  const flush = async () => {
    if (batch.length === 0) return;
    for await (const { accepted, refused } of send(batch)) {
      for (const { index, message } of refused) note(tally, { line: batchLines[index] ?? 0, ...bad(message) });
      tally.events += accepted;
      if (accepted > 0) tally.jobs += 1;
    }
    tally.lastSentLine = batchLines.at(-1) ?? 0;
    batch = [];
    batchLines = [];
    batchBytes = 0;
  };
  try {
    for await (const { number, bytes } of byteLines(input)) {
      const line = parseEventLine(bytes, isChecked ? now() : undefined);
      if (line.kind === 'bad') note(tally, { line: number, message: line.message });
      if (line.kind !== 'event') continue;
      batch.push(line.event);
      batchBytes += bytes?.length ?? 0;
      batchLines.push(number);
      if (batch.length === batchSize || batchBytes >= MAX_JOB_BYTES) await flush();
      if (signal.aborted) return;
    }
    if (!signal.aborted) await flush();
  } catch (error) {
    // When it is aborted, the input ends with an error while nothing comes in, and so does what is being sent.
    if (!signal.aborted) throw error;
  }
}

function note(tally: EmissionTally, { line, message }: BadLine): void {
  tally.badLines += 1;
  if (tally.listedBadLines.length < LISTED_BAD_LINES) tally.listedBadLines.push({ line, message });
}

/** What a line of a JSON Lines file holds. */
export type EventLine =
  | { readonly kind: 'event'; readonly event: object }
  | { readonly kind: 'blank' }
  | { readonly kind: 'bad'; readonly message: string };

const utf8 = new TextDecoder('utf-8', { fatal: true });

/**
 * What is sent is the object as it stands in the file.
 * @param now given: it is held to the rules of an event, as the worker holds it
 */
function parseEventLine(bytes: Buffer | undefined, now: Date | undefined): EventLine {
  if (bytes === undefined) return bad(`longer than ${MAX_LINE_BYTES} bytes`);
  let text: string;
  try {
    text = utf8.decode(bytes).trim();
  } catch {
    return bad('not UTF-8');
  }
  if (text === '') return { kind: 'blank' };
  let event: unknown;
  try {
    event = JSON.parse(text);
  } catch (error) {
    return bad(`not JSON: ${error instanceof Error ? error.message : String(error)}`);
  }
  if (typeof event !== 'object' || event === null || Array.isArray(event)) return bad('not a JSON object');
  if (!now) return { kind: 'event', event };
  const checked = parseUsageEvent(event, now.getTime());
  return checked.ok ? { kind: 'event', event } : bad(`${checked.reason}: ${checked.message}`);
}

/** The message may quote the line, whose control characters must not reach a terminal. */
function bad(message: string): { readonly kind: 'bad'; readonly message: string } {
  return { kind: 'bad', message: message.replace(/\p{Cc}/gu, '\uFFFD') };
}
