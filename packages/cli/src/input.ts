/** What commands read from people and files. */
import { isUtf8 } from 'node:buffer';
import { type FileHandle, open } from 'node:fs/promises';
import { createInterface } from 'node:readline';
import { addAbortSignal, type Readable, Writable } from 'node:stream';
import { readEventJson } from '@meterline/catalog/plain';
import type { CommandContext } from './command.js';
import { CommandError, readFailure } from './failure.js';

/**
 * Asks on stderr, and goes on only after exactly this answer on standard input.
 * @throws CommandError after any other answer, or none
 */
export async function requireConfirmation({ stdin, stderr }: CommandContext, question: string, answer: string) {
  stderr.write(`${question} `);
  if ((await readLine(stdin)) !== answer) throw new CommandError('not confirmed; nothing was changed');
}

/** The first line, empty where there is none. @param isSecret what is typed at a terminal is not shown */
export async function readLine(stdin: CommandContext['stdin'], isSecret = false): Promise<string> {
  const silence = new Writable({ write: (_chunk, _encoding, done) => done() });
  const isHidden = isSecret && stdin.isTTY === true;
  const lines = createInterface(isHidden ? { input: stdin, output: silence, terminal: true } : { input: stdin });
  try {
    for await (const line of lines) return line.trim();
    return '';
  } finally {
    lines.close();
  }
}

/**
 * @param path `-` is standard input
 * @returns what to read, and what messages call it
 * @throws CommandError when the file cannot be opened
 */
export async function openEventSource(path: string, stdin: Readable, signal?: AbortSignal) {
  const abortable = (input: Readable) => (signal ? addAbortSignal(signal, input) : input);
  if (path === '-') return { name: 'standard input', input: abortable(stdin) };
  const file = await openFile(path);
  return { name: path, input: abortable(file.createReadStream()) };
}

/** A directory can be opened but fails at the first read, when it is too late for a clear message. */
async function openFile(path: string): Promise<FileHandle> {
  const file = await open(path).catch((error: unknown) => {
    throw readFailure(path, error);
  });
  if (!(await file.stat()).isDirectory()) return file;
  await file.close();
  throw new CommandError(`cannot read ${path}: it is a directory`);
}

export const MAX_LINE_BYTES = 1_048_576;

const LINE_FEED = 0x0a;
const NOTHING = Buffer.alloc(0);

/** A line of a JSON Lines file, counted from 1: the object that it holds, or what is wrong with it. */
export type JsonLine = { readonly number: number; readonly bytes: number } & (
  | { readonly object: object }
  | { readonly problem: string }
);

/** Every line of a JSON Lines file that is not blank, of which one is held at a time. */
export async function* jsonLines(input: AsyncIterable<Buffer>): AsyncGenerator<JsonLine> {
  let number = 0;
  for await (const line of lines(input)) {
    number += 1;
    const parsed = parseLine(line);
    if (parsed) yield { number, bytes: line?.length ?? MAX_LINE_BYTES, ...parsed };
  }
}

/**
 * Splits a stream at line feeds. Not node:readline, which holds a line of any length, and in some versions splits at U+2028 and
 * U+2029, which JSON allows inside a string. A carriage return is white space to JSON and may stay.
 * @returns undefined for a line that is too long to be held
 */
async function* lines(input: AsyncIterable<Buffer>): AsyncGenerator<Buffer | undefined> {
  let rest: Buffer | undefined = NOTHING;
  for await (const chunk of input) {
    let start = 0;
    for (let end = chunk.indexOf(LINE_FEED); end !== -1; end = chunk.indexOf(LINE_FEED, start)) {
      yield joined(rest, chunk.subarray(start, end));
      rest = NOTHING;
      start = end + 1;
    }
    rest = joined(rest, chunk.subarray(start));
  }
  if (rest?.length !== 0) yield rest;
}

/** Undefined once the line is too long; the rest of it is ignored. */
function joined(line: Buffer | undefined, bytes: Buffer): Buffer | undefined {
  if (line === undefined || line.length + bytes.length > MAX_LINE_BYTES) return undefined;
  return line.length === 0 ? bytes : Buffer.concat([line, bytes]);
}

/** Undefined for a blank line. */
function parseLine(line: Buffer | undefined): { readonly object: object } | { readonly problem: string } | undefined {
  if (line === undefined) return { problem: `longer than ${MAX_LINE_BYTES} bytes` };
  if (!isUtf8(line)) return { problem: 'not UTF-8' };
  const text = line.toString().trim();
  if (text === '') return undefined;
  try {
    const object = readEventJson(text);
    if (typeof object === 'object' && object !== null && !Array.isArray(object)) return { object };
    return { problem: 'not a JSON object' };
  } catch (error) {
    return { problem: `not JSON: ${error instanceof Error ? error.message : String(error)}` };
  }
}
