import { type FileHandle, open } from 'node:fs/promises';
import { addAbortSignal, type Readable } from 'node:stream';
import { CommandError, readFailure } from '../command-error.js';

/** Where events are read from, and what messages call it. */
export interface EventSource {
  readonly name: string;
  readonly input: Readable;
}

/**
 * @param path `-` is standard input
 * @throws CommandError when the file cannot be opened
 */
export async function openEventSource(path: string, stdin: Readable, signal: AbortSignal): Promise<EventSource> {
  if (path === '-') return { name: 'standard input', input: addAbortSignal(signal, stdin) };
  const file = await openFile(path);
  return { name: path, input: addAbortSignal(signal, file.createReadStream()) };
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
