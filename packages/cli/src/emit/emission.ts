/** Sending a stream of JSON lines, in constant memory. */
import { byteLines } from './byte-lines.js';
import type { EventLine } from './event-line.js';

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
  /** Events in jobs that the queue has accepted, or that passed the check. */
  events: number;
  jobs: number;
  /** Every good line up to this one is sent. */
  lastSentLine: number;
  badLines: number;
  readonly listedBadLines: BadLine[];
}

export interface EmissionOptions {
  readonly input: AsyncIterable<Buffer>;
  readonly parse: (bytes: Buffer | undefined) => EventLine;
  readonly send: (events: readonly object[]) => Promise<unknown>;
  readonly batchSize: number;
  readonly signal: AbortSignal;
}

export function emptyTally(): EmissionTally {
  return { events: 0, jobs: 0, lastSentLine: 0, badLines: 0, listedBadLines: [] };
}

/**
 * Sends every good line and counts the bad ones. An abort is not an error: it ends the emission between two jobs.
 * @param tally kept up to date all along, so that it tells how far things came when this rejects
 */
export async function emitLines(
  { input, parse, send, batchSize, signal }: EmissionOptions,
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
      const line = parse(bytes);
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
