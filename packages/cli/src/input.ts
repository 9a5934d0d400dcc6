/** What commands read from people and files. */
import { type FileHandle, open } from 'node:fs/promises';
import { createInterface } from 'node:readline';
import { addAbortSignal, type Readable } from 'node:stream';
import type { CommandContext } from './command.js';
import { CommandError, readFailure } from './failure.js';

/**
 * Asks on stderr, and goes on only after exactly this answer on standard input.
 * @throws CommandError after any other answer, or none
 */
export async function requireAnswer({ stdin, stderr }: CommandContext, question: string, answer: string) {
  stderr.write(`${question} `);
  const lines = createInterface({ input: stdin });
  try {
    for await (const line of lines) {
      if (line.trim() === answer) return;
      break;
    }
  } finally {
    lines.close();
  }
  throw new CommandError('not confirmed; nothing was changed');
}

/** Where events are read from, and what messages call it. */
export interface EventSource {
  readonly name: string;
  readonly input: Readable;
}

/**
 * @param path `-` is standard input
 * @throws CommandError when the file cannot be opened
 */
export async function openEventSource(path: string, stdin: Readable, signal?: AbortSignal): Promise<EventSource> {
  const abortable = (input: Readable) => (signal ? addAbortSignal(signal, input) : input);
  if (path === '-') return { name: 'standard input', input: abortable(stdin) };
  const file = await openFile(path);
  return { name: path, input: abortable(file.createReadStream()) };
}

/** A directory can be opened but fails at the first read, when it is too late for a clear message. */
async function openFile(path: string): Promise<FileHandle> {
  let file: FileHandle;
  try {
    file = await open(path);
    if (!(await file.stat()).isDirectory()) return file;
  } catch (error) {
    throw readFailure(path, error);
  }
  await file.close();
  throw new CommandError(`cannot read ${path}: it is a directory`);
}

/** A line of a file or pipe: its bytes without the line end, or undefined when it is too long to be held. */
export interface ByteLine {
  /** From 1. */
  readonly number: number;
  readonly bytes: Buffer | undefined;
}

export const MAX_LINE_BYTES = 1_048_576;

const LINE_FEED = 0x0a;
const NOTHING = Buffer.alloc(0);

/**
 * Splits a stream at line feeds, holding one line at a time. Not node:readline, which also splits at U+2028 and U+2029:
 * JSON allows both inside a string. A carriage return is white space to JSON and may stay.
 */
export async function* byteLines(input: AsyncIterable<Buffer>): AsyncGenerator<ByteLine> {
  let number = 1;
  let rest: Buffer | undefined = NOTHING;
  for await (const chunk of input) {
    let start = 0;
    for (let end = chunk.indexOf(LINE_FEED); end !== -1; end = chunk.indexOf(LINE_FEED, start)) {
      yield { number, bytes: append(rest, chunk.subarray(start, end)) };
      number += 1;
      rest = NOTHING;
      start = end + 1;
    }
    rest = append(rest, chunk.subarray(start));
  }
  if (rest !== NOTHING) yield { number, bytes: rest };
}

/** Undefined once the line is too long; the rest of it is ignored. */
function append(line: Buffer | undefined, bytes: Buffer): Buffer | undefined {
  if (line === undefined || line.length + bytes.length > MAX_LINE_BYTES) return undefined;
  if (bytes.length === 0) return line;
  return line.length === 0 ? bytes : Buffer.concat([line, bytes]);
}

/** A line of a JSON Lines file: the object that it holds, or what is wrong with it. */
export type JsonLine = { readonly number: number; readonly bytes: number } & (
  | { readonly object: object }
  | { readonly fault: string }
);

/** Every line of a JSON Lines file that is not blank. */
export async function* jsonLines(input: AsyncIterable<Buffer>): AsyncGenerator<JsonLine> {
  const utf8 = new TextDecoder('utf-8', { fatal: true });
  for await (const { number, bytes } of byteLines(input)) {
    if (bytes === undefined) {
      yield { number, bytes: MAX_LINE_BYTES, fault: `longer than ${MAX_LINE_BYTES} bytes` };
      continue;
    }
    const line = { number, bytes: bytes.length };
    let text: string;
    try {
      text = utf8.decode(bytes).trim();
    } catch {
      yield { ...line, fault: 'not UTF-8' };
      continue;
    }
    if (text !== '') yield { ...line, ...parsed(text) };
  }
}

function parsed(text: string): { readonly object: object } | { readonly fault: string } {
  try {
    const object: unknown = JSON.parse(text);
    if (typeof object === 'object' && object !== null && !Array.isArray(object)) return { object };
    return { fault: 'not a JSON object' };
  } catch (error) {
    return { fault: `not JSON: ${error instanceof Error ? error.message : String(error)}` };
  }
}
