/** One file of a spool: events in JSON, one per line, only ever appended to. */
import { closeSync, fdatasync, ftruncateSync, openSync, unlinkSync, writeSync } from 'node:fs';
import { readFile, rename } from 'node:fs/promises';

const NEWLINE = '\n';

/** Called when a file has grown by so many bytes, fewer than none when it is smaller, or when something has failed. */
export interface FileWatcher {
  grown(bytes: number): void;
  cannotWrite(why: string, cause: unknown): void;
  failed(what: string, cause: unknown): void;
}

export class SpoolFile {
  readonly #path: string;
  readonly #watcher: FileWatcher;
  #bytes: number;
  #descriptor: number | undefined;

  private constructor(path: string, watcher: FileWatcher, bytes: number, descriptor: number | undefined) {
    this.#path = path;
    this.#watcher = watcher;
    this.#bytes = bytes;
    this.#descriptor = descriptor;
  }

  /** @throws the error of the system */
  static create(path: string, watcher: FileWatcher): SpoolFile {
    return new SpoolFile(path, watcher, 0, openSync(path, 'ax', 0o600));
  }

  /** A file of an earlier process, which nothing is appended to. */
  static found(path: string, watcher: FileWatcher, bytes: number): SpoolFile {
    return new SpoolFile(path, watcher, bytes, undefined);
  }

  /**
   * Appends an event with one call of the system. When that fails, part of the line may be there, and the file must be sealed,
   * so that no line comes after it: it has no end, and is not read.
   * @param bytes of the text
   * @returns whether the whole line is written
   */
  append(text: string, bytes: number): boolean {
    if (this.#descriptor === undefined) return false;
    try {
      if (writeSync(this.#descriptor, text + NEWLINE) !== bytes + 1) throw new Error('there is no room on the disk');
    } catch (error) {
      this.#watcher.cannotWrite('cannot be written', error);
      return false;
    }
    this.#grow(bytes + 1);
    return true;
  }

  /** All whole lines. @throws the error of the system */
  async read(): Promise<string[]> {
    const lines = (await readFile(this.#path, 'utf8')).split(NEWLINE);
    lines.pop();
    return lines;
  }

  /** Forces what was written to the disk. */
  force(): void {
    if (this.#descriptor === undefined) return;
    fdatasync(this.#descriptor, (error) => this.#forced(error));
  }

  /** Nothing more is appended. @param forced whether what was written is forced to the disk first */
  seal(forced: boolean): void {
    const descriptor = this.#descriptor;
    this.#descriptor = undefined;
    if (descriptor === undefined) return;
    if (forced) fdatasync(descriptor, (error) => this.#close(descriptor, error));
    else this.#close(descriptor, null);
  }

  /** All its events are sent, and more will be appended. */
  empty(): void {
    if (this.#descriptor === undefined) return;
    try {
      ftruncateSync(this.#descriptor);
      this.#grow(-this.#bytes);
    } catch (error) {
      this.#watcher.failed('cannot be emptied; its events are sent again at the next start', error);
    }
  }

  /** All its events are sent, and it is sealed. */
  remove(): void {
    try {
      unlinkSync(this.#path);
      this.#grow(-this.#bytes);
    } catch (error) {
      this.#watcher.failed('cannot be emptied; its events are sent again at the next start', error);
    }
  }

  /** Renames it, because some of it cannot be read: no later start looks at it, and nothing is lost. */
  async setAside(): Promise<void> {
    try {
      await rename(this.#path, `${this.#path}.damaged`);
      this.#grow(-this.#bytes);
    } catch (error) {
      this.#watcher.failed('has a damaged file that cannot be renamed', error);
    }
  }

  #close(descriptor: number, error: Error | null): void {
    this.#forced(error);
    try {
      closeSync(descriptor);
    } catch (failure) {
      this.#watcher.failed('cannot be closed', failure);
    }
  }

  #forced(error: Error | null): void {
    if (error) this.#watcher.failed('cannot be forced to the disk', error);
  }

  #grow(bytes: number): void {
    this.#bytes += bytes;
    this.#watcher.grown(bytes);
  }
}
