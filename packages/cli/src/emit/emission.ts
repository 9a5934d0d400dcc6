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

/** How far an emission has come. */
export interface EmissionTally {
  /** Events in jobs that the queue has accepted; with --check, those that passed. */
  events: number;
  jobs: number;
  /** Every good line up to this one is sent. */
  lastSentLine: number;
  badLines: number;
  readonly listedBadLines: BadLine[];
}

export interface EmissionOptions {
  readonly input: AsyncIterable<Buffer>;
  /** For the rule that an event is not of the future. */
  readonly now: () => Date;
  readonly send: (events: readonly object[]) => Promise<unknown>;
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
  { input, now, send, batchSize, signal }: EmissionOptions,
  tally: EmissionTally,
): Promise<void> {
  let batch: object[] = [];
  let batchBytes = 0;
  let batchEnd = 0;
  const flush = async () => {
    if (batch.length === 0) return;
    await send(batch);
    tally.events += batch.length;
    tally.jobs += 1;
    tally.lastSentLine = batchEnd;
    batch = [];
    batchBytes = 0;
  };
  try {
    for await (const { number, bytes } of byteLines(input)) {
      const line = parseEventLine(bytes, now());
      if (line.kind === 'bad') note(tally, { line: number, message: line.message });
      if (line.kind !== 'event') continue;
      batch.push(line.event);
      batchBytes += bytes?.length ?? 0;
      batchEnd = number;
      if (batch.length === batchSize || batchBytes >= MAX_JOB_BYTES) await flush();
      if (signal.aborted) return;
    }
  } catch (error) {
    // The input ends with an error when it is aborted while nothing comes in.
    if (signal.aborted) return;
    throw error;
  }
  if (!signal.aborted) await flush();
}

function note(tally: EmissionTally, badLine: BadLine): void {
  tally.badLines += 1;
  if (tally.listedBadLines.length < LISTED_BAD_LINES) tally.listedBadLines.push(badLine);
}

/** What a line of a JSON Lines file holds. */
export type EventLine =
  | { readonly kind: 'event'; readonly event: object }
  | { readonly kind: 'blank' }
  | { readonly kind: 'bad'; readonly message: string };

const utf8 = new TextDecoder('utf-8', { fatal: true });

/** Held to the rules of an event, as the worker holds it. What is sent is the object as it stands in the file. */
function parseEventLine(bytes: Buffer | undefined, now: Date): EventLine {
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
  const checked = parseUsageEvent(event, now.getTime());
  return checked.ok ? { kind: 'event', event } : bad(`${checked.reason}: ${checked.message}`);
}

/** The message may quote the line, whose control characters must not reach a terminal. */
function bad(message: string): EventLine {
  return { kind: 'bad', message: message.replace(/\p{Cc}/gu, '\uFFFD') };
}
