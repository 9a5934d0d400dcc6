/** What a command writes for another program to read: it appears whole, or not at all. */
import { randomUUID } from 'node:crypto';
import { type FileHandle, open, rename, rm, stat } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { basename, dirname, join } from 'node:path';
import { pipeline } from 'node:stream/promises';
import type { CommandContext } from '../command.js';
import { CommandError, systemErrorCode, usageError } from '../failure.js';

/** The temp file, until it is whole. */
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

  /** Forgets what was written, but for so many bytes. */
  async clear(kept = 0): Promise<void> {
    await this.#file.truncate(kept);
    this.#length = kept;
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
  const mode = path === undefined ? 0o600 : await modeOf(path);
  const id = `.meterline-${randomUUID()}`;
  const temp = path === undefined ? join(tmpdir(), id) : join(dirname(path), `${id}-${basename(path)}`);
  return describing(path ?? tmpdir(), async () => {
    const file = await open(temp, 'wx+', mode);
    try {
      if (path === undefined) await rm(temp);
      const draft = new Draft(file);
      const result = await produce(draft);
      if (path !== undefined) {
        await file.sync();
        await rename(temp, path);
      } else if (draft.length > 0) {
        await pipeline(file.createReadStream({ start: 0, autoClose: false }), stdout, { end: false });
      }
      return result;
    } finally {
      await file.close();
      await rm(temp, { force: true });
    }
  });
}

/** A temp file would take the place of a device or a pipe. @throws CommandError */
async function modeOf(path: string): Promise<number> {
  const found = await stat(path).catch(() => undefined);
  if (found?.isDirectory()) throw usageError(`cannot write ${path}: it is a directory; name a file in it`);
  if (found && !found.isFile())
    throw usageError(`cannot write ${path}: it is no file; leave out --output and redirect`);
  return found?.mode ?? 0o666;
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
