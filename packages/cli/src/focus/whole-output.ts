/** What a command writes for another program to read: it appears whole, or not at all. */
import { randomUUID } from 'node:crypto';
import { type FileHandle, open, rm, stat } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pipeline } from 'node:stream/promises';
import { type CommandContext, CommandError, systemErrorCode, usageError } from '../command.js';

/** The draft, until it is whole. */
export class Draft {
  readonly #file: FileHandle;
  #length = 0;

  constructor(file: FileHandle) {
    this.#file = file;
  }

  get length(): number {
    return this.#length;
  }

  /** @throws the system's error, such as that of a full disk */
  async write(chunk: string | Uint8Array): Promise<void> {
    const bytes = typeof chunk === 'string' ? Buffer.from(chunk) : chunk;
    let done = 0;
    while (done < bytes.length) {
      const { bytesWritten } = await this.#file.write(bytes, done, bytes.length - done, this.#length);
      done += bytesWritten;
      this.#length += bytesWritten;
    }
  }

  /** Forgets what was written. */
  async clear(): Promise<void> {
    await this.#file.truncate(0);
    this.#length = 0;
  }
}

/**
 * Runs `produce`, and puts what it has written in place once it is done: in the file, on disk, or on standard output. If it
 * fails or is killed, the file stays as it was and standard output has nothing.
 *
 * @param path undefined: standard output, which waits in a file of the system's temporary folder that has no name
 * @throws CommandError when it cannot be written
 */
export async function writeWhole<Result>(
  { stdout }: Pick<CommandContext, 'stdout'>,
  path: string | undefined,
  produce: (draft: Draft) => Promise<Result>,
): Promise<Result> {
  if (path === undefined) {
    const spool = join(tmpdir(), `meterline-${randomUUID()}`);
    const file = await describing(spool, () => open(spool, 'wx+', 0o600));
    try {
      await rm(spool);
      const draft = new Draft(file);
      const result = await describing(tmpdir(), () => produce(draft));
      if (draft.length > 0) {
        await pipeline(file.createReadStream({ start: 0, autoClose: false }), stdout, { end: false });
      }
      return result;
    } finally {
      await file.close();
    }
  }
  await requirePlainFile(path);
  const results: Result[] = [];
  const tmpfileCreated = async (name: string) => {
    const file = await open(name, 'r+');
    try {
      results.push(await produce(new Draft(file)));
    } finally {
      await file.close();
    }
  };
  // It takes longer to load than all the rest.
  const { default: writeFileAtomic } = await import('write-file-atomic');
  await describing(path, () => writeFileAtomic(path, '', { tmpfileCreated }));
  const [result] = results;
  if (result === undefined) throw new Error('nothing was produced');
  return result;
}

/** A draft would take the place of a device or a pipe. @throws CommandError */
async function requirePlainFile(path: string): Promise<void> {
  const found = await stat(path).catch(() => undefined);
  if (found?.isDirectory()) throw usageError(`cannot write ${path}: it is a directory; name a file in it`);
  if (found && !found.isFile())
    throw usageError(`cannot write ${path}: it is no file; leave out --output and redirect`);
}

const WRITE_FAILURES: Readonly<Record<string, string>> = {
  ENOENT: 'there is no such folder',
  ENOTDIR: 'there is no such folder',
  EACCES: 'permission denied',
  EROFS: 'it is on a disk that can only be read',
  ENOSPC: 'the disk is full',
};

/** @throws CommandError for a failure of the disk; any other error as it is */
async function describing<T>(path: string, act: () => Promise<T>): Promise<T> {
  try {
    return await act();
  } catch (error) {
    const reason = WRITE_FAILURES[systemErrorCode(error) ?? ''];
    if (reason === undefined) throw error;
    throw new CommandError(`cannot write ${path}: ${reason}`, undefined, { cause: error });
  }
}
