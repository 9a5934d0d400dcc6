/** Writes output for other programs atomically: the complete output appears, or nothing. */
import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { type FileHandle, open, realpath, rename, rm, stat } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { counted } from '@meterline/catalog';
import { type CommandContext, type CommandStreams, say, sayProgress } from '../command.js';
import { CommandError, systemErrorText, usageError } from '../failure.js';

/** Output up to this size stays in memory. Most results are one page of at most 2 MB. */
const MEMORY_BYTES = 8 * 1024 * 1024;

/** Buffers output in memory. Beyond MEMORY_BYTES, buffers the output in a temp file. */
export class WaitingOutput {
  readonly #openFile: () => Promise<FileHandle>;
  #memory: Buffer[] = [];
  #file: FileHandle | undefined;
  #size = 0;

  constructor(openFile: () => Promise<FileHandle>) {
    this.#openFile = openFile;
  }

  get size(): number {
    return this.#size;
  }

  async appendFile(data: string | Uint8Array): Promise<void> {
    const bytes = Buffer.from(data);
    this.#size += bytes.length;
    this.#memory.push(bytes);
    if (this.#file || this.#size > MEMORY_BYTES) await this.file();
  }

  async truncate(size = 0): Promise<void> {
    this.#size = size;
    if (this.#file) await this.#file.truncate(size);
    else this.#memory = [Buffer.concat(this.#memory).subarray(0, size)];
  }

  async file(): Promise<FileHandle> {
    this.#file ??= await this.#openFile();
    await this.#file.appendFile(Buffer.concat(this.#memory.splice(0)));
    return this.#file;
  }

  chunks(): AsyncIterable<Buffer> | Iterable<Buffer> {
    return this.#file?.createReadStream({ start: 0, autoClose: false }) ?? this.#memory;
  }

  async close(): Promise<void> {
    await this.#file?.close();
  }
}

/**
 * Runs `produce` and then publishes its output: replaces the file, or writes to standard output. If `produce` fails or the process is
 * killed, the file is unchanged and standard output is empty.
 * @param path undefined for standard output. Large output then waits in an unlinked file in the system's temp folder.
 * @throws CommandError if the output cannot be written
 */
export async function writeWhole<Result>(
  { stdout }: Pick<CommandContext, 'stdout'>,
  path: string | undefined,
  produce: (output: WaitingOutput) => Promise<Result>,
): Promise<Result> {
  const found = path === undefined ? undefined : await existingFile(path);
  const target = found?.path ?? path;
  const temp = join(target === undefined ? tmpdir() : dirname(target), `.meterline-${randomUUID()}`);
  const output = new WaitingOutput(async () => {
    const file = await open(temp, 'ax+', target === undefined ? 0o600 : 0o666);
    // Give the new file the exact mode of the old one. The umask would limit a mode that is passed to open().
    if (found) await file.chmod(found.mode);
    if (target === undefined) await rm(temp);
    return file;
  });
  try {
    // Open the temp file before the first request, so that an unwritable folder is reported immediately.
    if (target !== undefined) await output.file();
    const result = await produce(output);
    if (target === undefined) {
      // Do not use `pipeline`: it would leave a set of listeners on stdout for each result of --watch.
      for await (const chunk of output.chunks()) {
        if (!stdout.write(chunk)) await once(stdout, 'drain');
      }
    } else {
      await (await output.file()).sync();
      await rename(temp, target);
    }
    return result;
  } catch (error) {
    throw path === undefined
      ? writeFailure(`to ${tmpdir()}`, error, '; set TMPDIR to a writable folder')
      : writeFailure(path, error);
  } finally {
    await output.close();
    await rm(temp, { force: true });
  }
}

/**
 * Returns the existing file to replace. For a symbolic link, returns its target.
 * @throws CommandError for a directory, and for a device or pipe, which rename() would replace with a file
 */
async function existingFile(path: string): Promise<{ path: string; mode: number } | undefined> {
  // stat() fails for a link with a missing target. The link itself is replaced then.
  const found = await stat(path).catch(() => undefined);
  if (found?.isDirectory()) throw usageError(`cannot write ${path}: it is a directory; name a file in it`);
  if (found && !found.isFile())
    throw usageError(
      `cannot write ${path}: it is not a regular file; redirect standard output instead of using --file`,
    );
  return found && { path: await realpath(path), mode: found.mode & 0o7777 };
}

/** Converts an error of the file system to a CommandError. Returns any other error unchanged. */
function writeFailure(path: string, error: unknown, advice = ''): unknown {
  const text = systemErrorText(error);
  if (text === undefined) return error;
  return new CommandError(`cannot write ${path}: ${text}${advice}`, undefined, { cause: error });
}

/** Number of pages per line of progress if stderr is not a terminal. */
const PAGES_PER_LINE = 10;

export class PageProgress {
  #pages = 0;
  #items = 0;

  constructor(
    private readonly streams: Pick<CommandStreams, 'stderr'>,
    private readonly noun: string,
  ) {}

  page(items: number): void {
    this.#pages += 1;
    this.#items += items;
    this.#say(this.#pages % PAGES_PER_LINE === 0);
  }

  restart(): void {
    this.end();
    if (this.#pages > 0) say(this.streams, 'The response changed while its pages were read; reading it again.');
    [this.#pages, this.#items] = [0, 0];
  }

  end(): void {
    if (this.#pages > 0) this.#say(true);
    sayProgress(this.streams, '');
  }

  #say(isMilestone: boolean): void {
    const text = `Read ${counted(this.#items, this.noun)} on ${counted(this.#pages, 'page')}.`;
    sayProgress(this.streams, text, isMilestone);
  }
}
