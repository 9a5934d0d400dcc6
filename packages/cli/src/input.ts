/** Reads confirmations and secrets from standard input, and JSON Lines files. */
import { isUtf8 } from 'node:buffer';
import { type FileHandle, open } from 'node:fs/promises';
import { createInterface } from 'node:readline';
import { addAbortSignal, type Readable, Writable } from 'node:stream';
import { readEventJson } from '@meterline/catalog/plain';
import type { CommandContext } from './command.js';
import { CommandError, readFailure } from './failure.js';

/** Prints a question on stderr, and requires an exact reply on standard input. @throws CommandError for any other reply, or none */
export async function requireConfirmation({ stdin, stderr }: CommandContext, question: string, reply: string) {
  stderr.write(`${question} `);
  if ((await readLine(stdin)) !== reply) throw new CommandError('not confirmed; nothing was changed');
}

/** Reads the first line. Returns '' if the input is empty. @param isSecret hides the characters that the user types at a terminal */
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

/** Opens a file of events, or standard input for `-`. Returns the stream and its name for messages. @throws CommandError */
export async function openEventSource(path: string, stdin: Readable, signal?: AbortSignal) {
  const abortable = (input: Readable) => (signal ? addAbortSignal(signal, input) : input);
  if (path === '-') return { name: 'standard input', input: abortable(stdin) };
  const file = await openFile(path);
  return { name: path, input: abortable(file.createReadStream()) };
}

/** Rejects directories immediately. Opening a directory succeeds, and only the first read would fail, with an unclear error. */
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

/** A line of a JSON Lines file, numbered from 1. Has either the object in the line, or the reason why the line contains no object. */
export type JsonLine = { readonly number: number; readonly bytes: number } & (
  | { readonly object: object }
  | { readonly problem: string }
);

/** Yields the lines of a JSON Lines file, except blank lines. Holds only one line in memory. */
export async function* jsonLines(input: AsyncIterable<Buffer>): AsyncGenerator<JsonLine> {
  let number = 0;
  for await (const line of lines(input)) {
    number += 1;
    const parsed = parseLine(line);
    if (parsed) yield { number, bytes: line?.length ?? MAX_LINE_BYTES, ...parsed };
  }
}

/**
 * Splits a stream at line feeds. Yields undefined for a line longer than MAX_LINE_BYTES.
 * node:readline is not suitable, because it buffers lines of any length. Some versions also split at U+2028 and U+2029, which JSON allows
 * inside strings. Carriage returns stay in the lines, because they are white space in JSON.
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

/** Returns undefined when the line is too long, and for each further part of that line. */
function joined(line: Buffer | undefined, bytes: Buffer): Buffer | undefined {
  if (line === undefined || line.length + bytes.length > MAX_LINE_BYTES) return undefined;
  return line.length === 0 ? bytes : Buffer.concat([line, bytes]);
}

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
