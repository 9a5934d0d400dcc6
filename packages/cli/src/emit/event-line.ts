import { parseUsageEvent } from '@meterline/catalog';
import { MAX_LINE_BYTES } from './byte-lines.js';

/** What a line of a JSON Lines file holds. */
export type EventLine =
  | { readonly kind: 'event'; readonly event: object }
  | { readonly kind: 'blank' }
  | { readonly kind: 'bad'; readonly message: string };

const utf8 = new TextDecoder('utf-8', { fatal: true });

/** Checks no more than that the line is a JSON object; what makes it an event is the worker's to judge. */
export function parseEventLine(bytes: Buffer | undefined): EventLine {
  if (bytes === undefined) return bad(`longer than ${MAX_LINE_BYTES} bytes`);
  let text: string;
  try {
    text = utf8.decode(bytes).trim();
  } catch {
    return bad('not UTF-8');
  }
  if (text === '') return { kind: 'blank' };
  try {
    const value: unknown = JSON.parse(text);
    if (typeof value === 'object' && value !== null && !Array.isArray(value)) return { kind: 'event', event: value };
    return bad('not a JSON object');
  } catch (error) {
    return bad(`not JSON: ${error instanceof Error ? error.message : String(error)}`);
  }
}

/** The same, held to the rules of an event as the worker would. */
export function checkEventLine(bytes: Buffer | undefined, now: Date): EventLine {
  const line = parseEventLine(bytes);
  if (line.kind !== 'event') return line;
  const checked = parseUsageEvent(line.event, now.getTime());
  return checked.ok ? line : bad(`${checked.reason}: ${checked.message}`);
}

/** The message may quote the line, whose control characters must not reach a terminal. */
function bad(message: string): EventLine {
  return { kind: 'bad', message: message.replace(/\p{Cc}/gu, '\uFFFD') };
}
