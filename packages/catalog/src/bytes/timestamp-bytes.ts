/** Timestamps by their bytes. All of one day are computed from its start, which `parseTimestamp` finds once. */
import { type EpochMs, parseTimestamp } from '../timestamp.js';

const POINT = 0x2e;
const ZERO = 0x30;
const COLON = 0x3a;
const Z = 0x5a;

/** `YYYY-MM-DDThh:mm:ssZ` and `YYYY-MM-DDThh:mm:ss.mmmZ`; of both, `YYYY-MM-DDT`. */
const SECONDS_LENGTH = 20;
export const MILLISECONDS_LENGTH = 24;
const DAY_LENGTH = 11;
const LONGEST = '2025-10-01T00:00:00.123456789+00:00'.length;

export class TimestampBytes {
  /** The day of the latest timestamp, as it is written, and its start. */
  #day = new TextEncoder().encode('none yet');
  #dayStart: EpochMs = 0;

  /** @returns what {@link parseTimestamp} does for the text from `from` up to `to` */
  parse(data: Uint8Array, from: number, to: number): EpochMs | undefined {
    const length = to - from;
    const hasFraction = length === MILLISECONDS_LENGTH && data[from + 19] === POINT;
    const isPlain = (length === SECONDS_LENGTH || hasFraction) && data[from + length - 1] === Z;
    if (!isPlain || data[from + 13] !== COLON || data[from + 16] !== COLON)
      return length > LONGEST ? undefined : parseTimestamp(asciiText(data, from, to));
    if (!this.#isKnownDay(data, from)) {
      const start = parseTimestamp(`${asciiText(data, from, from + DAY_LENGTH)}00:00:00Z`);
      if (start === undefined) return undefined;
      this.#day = Uint8Array.from(data.subarray(from, from + DAY_LENGTH));
      this.#dayStart = start;
    }
    const hour = twoDigits(data, from + 11);
    const minute = twoDigits(data, from + 14);
    const second = twoDigits(data, from + 17);
    const hundredths = hasFraction ? twoDigits(data, from + 20) : 0;
    const rest = hasFraction ? (data[from + 22] ?? 0) - ZERO : 0;
    // Not one of these comparisons holds for NaN.
    if (!(hour <= 23 && minute <= 59 && second <= 59 && hundredths <= 99 && rest >= 0 && rest <= 9)) return undefined;
    return this.#dayStart + ((hour * 60 + minute) * 60 + second) * 1000 + hundredths * 10 + rest;
  }

  #isKnownDay(data: Uint8Array, from: number): boolean {
    const day = this.#day;
    for (let at = 0; at < day.length; at += 1) if (data[from + at] !== day[at]) return false;
    return true;
  }
}

/** NaN when one of them is no digit. */
function twoDigits(data: Uint8Array, at: number): number {
  const tens = (data[at] ?? 0) - ZERO;
  const units = (data[at + 1] ?? 0) - ZERO;
  return tens >= 0 && tens <= 9 && units >= 0 && units <= 9 ? tens * 10 + units : Number.NaN;
}

/** The text of bytes that are ASCII if they are what is asked for: any other byte becomes a character that is no part of it. */
export function asciiText(data: Uint8Array, from: number, to: number): string {
  let text = '';
  for (let at = from; at < to; at += 1) text += String.fromCharCode(data[at] ?? 0);
  return text;
}
