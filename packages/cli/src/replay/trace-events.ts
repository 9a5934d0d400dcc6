/** Reads trace files into events, all of them before anything is sent: a fault in one is found while it is still cheap. */
import { readFile } from 'node:fs/promises';
import { basename } from 'node:path';
import { parseUsageEvent, type UsageEventInput } from '@meterline/catalog';
import type { TraceOptions } from '@meterline/local-stack/trace';
import { CommandError, readFailure, systemErrorCode } from '../command.js';

export interface TraceEvents {
  readonly requests: number;
  readonly events: readonly UsageEventInput[];
}

/**
 * @throws CommandError that names file and line, when a file is no trace or gives an event that would be refused
 */
export async function readTraceEvents(path: string, options: TraceOptions, now: Date): Promise<TraceEvents> {
  const trace = await loadTraceConversion();
  const text = await readTraceFile(path);
  try {
    const file = trace.parseTrace(basename(path), text);
    const events = file.requests.flatMap((request) => {
      const pair = trace.eventsOfRequest(file, request, options);
      for (const event of pair) requireAcceptable(event, `${path}:${trace.lineOfRequest(request)}`, now);
      return pair;
    });
    return { requests: file.requests.length, events };
  } catch (error) {
    if (!(error instanceof trace.TraceFormatError)) throw error;
    const place = error.line === undefined ? path : `${path}:${error.line}`;
    throw new CommandError(`${place}: ${error.message}`, undefined, { cause: error });
  }
}

/** An account that is no name, or hours that lead into the future or before 1970, are found here. */
function requireAcceptable(event: UsageEventInput, place: string, now: Date): void {
  const checked = parseUsageEvent(event, now.getTime());
  if (!checked.ok) throw new CommandError(`${place}: would be refused: ${checked.message} (${event.timestamp})`);
}

async function readTraceFile(path: string): Promise<string> {
  try {
    return await readFile(path, 'utf8');
  } catch (error) {
    throw readFailure(path, error);
  }
}

/** Loaded only here: the local stack, where the conversion lives for the demo's sake, is not in production images. */
async function loadTraceConversion() {
  try {
    return await import('@meterline/local-stack/trace');
  } catch (error) {
    if (systemErrorCode(error) !== 'ERR_MODULE_NOT_FOUND') throw error;
    throw new CommandError('replay is part of a checkout only, after npm install', undefined, { cause: error });
  }
}
