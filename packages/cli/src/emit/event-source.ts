import { open } from 'node:fs/promises';
import { addAbortSignal, type Readable } from 'node:stream';
import { CommandError, systemErrorCode } from '../command-error.js';

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
  try {
    const file = await open(path);
    if ((await file.stat()).isDirectory()) {
      await file.close();
      throw new CommandError(`cannot read ${path}: it is a directory`);
    }
    return { name: path, input: addAbortSignal(signal, file.createReadStream()) };
  } catch (error) {
    if (error instanceof CommandError) throw error;
    throw new CommandError(`cannot read ${path}: ${systemErrorCode(error) ?? error}`, undefined, { cause: error });
  }
}
