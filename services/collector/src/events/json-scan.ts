/**
 * Finds where the elements of a JSON array end, in a text that arrives in pieces, and counts its values. It knows brackets, commas
 * and strings, and judges nothing: a text that it divides wrongly is no JSON, which JSON.parse finds.
 */
import { MAX_JOB_VALUES } from '@meterline/catalog';
import { moreValuesThanAJob } from './limits.js';

const QUOTE = '"'.charCodeAt(0);
const COMMA = ','.charCodeAt(0);
const BACKSLASH = '\\'.charCodeAt(0);
const OPENING = ['[', '{'].map((bracket) => bracket.charCodeAt(0));
const CLOSING = [']', '}'].map((bracket) => bracket.charCodeAt(0));
const [BRACKET, BRACE] = OPENING;
const [BRACKET_END, BRACE_END] = CLOSING;

export class JsonScan {
  #depth: number;
  #values: number;
  #isInString = false;
  /** The place of the last comma between two elements in what was scanned last; -1: there is none. */
  lastComma = -1;
  /** The place where the array ends; -1: it has not ended yet. */
  end = -1;

  /**
   * @param depth 1: the text begins within an array
   * @param values how many came before
   */
  constructor(depth: 0 | 1, values: number) {
    this.#depth = depth;
    this.#values = values;
  }

  /**
   * Goes on with a text, which may begin with some of what it was given before.
   * @param from how much of that
   * @param isLines whether each line is a text of its own, of which the values alone are counted
   * @throws ApiError `body_too_large` when there are too many values: 5 MB of brackets would become hundreds of megabytes
   */
  scan(text: string, from: number, isLines = false): void {
    this.lastComma = -1;
    let lineEnd = isLines ? endOfLine(text, from) : text.length;
    for (let at = this.#isInString ? this.#endOfString(text, from, lineEnd) + 1 : from; at < text.length; at += 1) {
      const character = text.charCodeAt(at);
      if (character === QUOTE) {
        if (lineEnd < at) lineEnd = endOfLine(text, at);
        at = this.#endOfString(text, at + 1, lineEnd);
      } else if (character === COMMA) {
        this.#count();
        if (this.#depth === 1) this.lastComma = at;
      } else if (character === BRACKET || character === BRACE) {
        this.#count();
        this.#depth += 1;
      } else if (character === BRACKET_END || character === BRACE_END) {
        this.#depth -= 1;
        if (this.#depth > 0 || isLines) continue;
        this.end = at;
        return;
      }
    }
  }

  #count(): void {
    this.#values += 1;
    if (this.#values > MAX_JOB_VALUES) throw moreValuesThanAJob();
  }

  /**
   * The place of its quote. Without one it ends with its line: one quote would hide the values of all other lines.
   * @param lineEnd the length of the text if the line goes on after it
   */
  #endOfString(text: string, from: number, lineEnd: number): number {
    let end = text.indexOf('"', from);
    while (end !== -1 && end < lineEnd && isEscaped(text, end)) end = text.indexOf('"', end + 1);
    const isClosed = end !== -1 && end < lineEnd;
    this.#isInString = !isClosed && lineEnd === text.length;
    return isClosed ? end : lineEnd;
  }
}

function endOfLine(text: string, from: number): number {
  const end = text.indexOf('\n', from);
  return end === -1 ? text.length : end;
}

/** A text always begins before the backslashes that it may begin with, because those are in a string. */
function isEscaped(text: string, at: number): boolean {
  let backslashes = 0;
  while (text.charCodeAt(at - 1 - backslashes) === BACKSLASH) backslashes += 1;
  return backslashes % 2 === 1;
}
