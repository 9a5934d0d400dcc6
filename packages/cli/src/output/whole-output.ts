/** What a command writes for another program to read: it appears whole, or not at all. */
import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { type FileHandle, open, realpath, rename, rm, stat } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { counted } from '@meterline/catalog';
import { type CommandContext, type CommandStreams, say, sayProgress } from '../command.js';
import { CommandError, systemErrorText, usageError } from '../failure.js';

/** Most results are one page of at most 2 MB. */
const MEMORY_BYTES = 8 * 1024 * 1024;

/** Buffers output: in memory up to some megabytes, then in a temp file. */
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

  /** The temp file with all that was written. */
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
 * Runs `produce`, and puts what it has written in place once it is done: in the file, on disk, or on standard output. If it
 * fails or is killed, the file stays as it was and standard output has nothing.
 *
 * @param path undefined: standard output. What is large waits in a file of the system's temporary folder that has no name
 * @throws CommandError when it cannot be written
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
    // The umask cuts the mode that a file is opened with.
    if (found) await file.chmod(found.mode);
    if (target === undefined) await rm(temp);
    return file;
  });
  try {
    // Before the first request, so that a folder which cannot be written is reported at once.
    if (target !== undefined) await output.file();
    const result = await produce(output);
    if (target === undefined) {
      // `pipeline` would leave its listeners on the output, one set for each result of --watch.
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
      ? writeFailure(`to ${tmpdir()}`, error, '; set TMPDIR to a folder that can be written')
      : writeFailure(path, error);
  } finally {
    await output.close();
    await rm(temp, { force: true });
  }
}

/** The file that is replaced: of a link the one that it names. A temp file would take the place of a device or a pipe. @throws CommandError */
async function existingFile(path: string): Promise<{ path: string; mode: number } | undefined> {
  // A link whose target is not there yet is replaced itself.
  const found = await stat(path).catch(() => undefined);
  if (found?.isDirectory()) throw usageError(`cannot write ${path}: it is a directory; name a file in it`);
  if (found && !found.isFile()) throw usageError(`cannot write ${path}: it is no file; leave out --file and redirect`);
  return found && { path: await realpath(path), mode: found.mode & 0o7777 };
}

/** A failure of the disk in words; any other error as it is. */
function writeFailure(path: string, error: unknown, advice = ''): unknown {
  const text = systemErrorText(error);
  if (text === undefined) return error;
  return new CommandError(`cannot write ${path}: ${text}${advice}`, undefined, { cause: error });
}

/** Pages between two lines where there is no terminal. */
const PAGES_PER_LINE = 10;

/** How many pages have been read: nobody knows how many there are. */
export class PageProgress {
  #pages = 0;
  #items = 0;

  /** @param noun what the pages have */
  constructor(
    private readonly streams: Pick<CommandStreams, 'stderr'>,
    private readonly noun: string,
  ) {}

  page(items: number): void {
    this.#pages += 1;
    this.#items += items;
    this.#say(this.#pages % PAGES_PER_LINE === 0);
  }

  /** The pages come again. */
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
