/**
 * Stores events on disk, in a folder of files. A file is removed when all its events are sent. The progress within a file is not stored,
 * because an event that is sent twice counts once. A crash after each step has this effect:
 *
 * 1. The event's line is written: the next process sends the event. The line survives `kill -9`, because the line is in the operating
 * system's cache. It survives a power cut only after an fsync.
 * 2. The event is sent: the next process sends the event again.
 * 3. The file is removed or emptied: nothing is left to send.
 */

import { once } from 'node:events';
import { closeSync, fdatasync, ftruncateSync, openSync, renameSync, unlinkSync, writeSync } from 'node:fs';
import { mkdir, open, readdir, readFile } from 'node:fs/promises';
import type { Server } from 'node:net';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { parseJson } from '@meterline/catalog/plain';
import { v7 as uuidV7 } from 'uuid';
import type { CheckedOptions } from './options.js';
import { EmitterError, errorMessage, type Report } from './problems.js';
import { lockSpool } from './spool-lock.js';

const FILE_NAME = /^(\d{12})\.jsonl$/;
/** Pause after a failed write. With a full disk, the spool then tries one write per second instead of one write per event. */
const RETRY_MS = 1_000;
const TEMPORARY_ERRORS = new Set(['EMFILE', 'ENFILE', 'ENOMEM', 'EAGAIN']);
const EMPTYING_FAILED = 'cannot be emptied; its events are sent again at the next start';
const FSYNC_FAILED = 'cannot be flushed to disk';

type SpoolSettings = NonNullable<CheckedOptions['spool']>;

export class Spool {
  /** Files left by earlier processes, oldest first, each with the number of its complete lines. */
  readonly recovered: { readonly file: SpoolFile; readonly events: number }[] = [];
  readonly #settings: SpoolSettings;
  readonly #lock: Server;
  readonly #report: Report;
  readonly #fsyncTimer: NodeJS.Timeout | undefined;
  #bytes = 0;
  #nextNumber = 1;
  #newest: SpoolFile | undefined;
  #hasGrown = false;
  #isClosed = false;
  #failedAt: number | undefined;

  private constructor(settings: SpoolSettings, lock: Server, report: Report) {
    this.#settings = settings;
    this.#lock = lock;
    this.#report = report;
    if (settings.fsyncMs !== undefined) this.#fsyncTimer = setInterval(() => this.#fsync(), settings.fsyncMs).unref();
  }

  /** Locks the folder for this process and finds the files of earlier processes. @throws EmitterError */
  static async open(settings: SpoolSettings, report: Report): Promise<Spool> {
    const { directory } = settings;
    let lock: Server | undefined;
    try {
      await mkdir(directory, { recursive: true, mode: 0o700 });
      lock = await lockSpool(directory);
      const spool = new Spool(settings, lock, report);
      await spool.#recover();
      return spool;
    } catch (error) {
      lock?.close();
      if (error instanceof EmitterError) throw error;
      throw new EmitterError('spool_unusable', `the spool cannot be used: ${errorMessage(error)}`, { cause: error });
    }
  }

  async #recover(): Promise<void> {
    for (const name of (await readdir(this.#settings.directory)).sort()) {
      const [, number] = FILE_NAME.exec(name) ?? [];
      if (number === undefined) continue;
      const path = join(this.#settings.directory, name);
      const content = await readFile(path);
      const file = new SpoolFile(path, this, content.length, undefined);
      this.recovered.push({ file, events: content.toString('latin1').split('\n').length - 1 });
      this.#bytes += content.length;
      this.#nextNumber = Number(number) + 1;
    }
  }

  /** Returns whether the spool has room for this number of bytes, and no write has failed within the last second. */
  accepts(bytes: number): boolean {
    if (this.#failedAt !== undefined && performance.now() - this.#failedAt < RETRY_MS) return false;
    this.#failedAt = undefined;
    if (this.#bytes + bytes <= this.#settings.maxBytes) return true;
    this.cannotWrite(`is full (${this.#settings.maxBytes} bytes)`);
    return false;
  }

  /** Creates a file to append to. If that fails, reports the failure and returns undefined. */
  create(): SpoolFile | undefined {
    const path = join(this.#settings.directory, `${String(this.#nextNumber).padStart(12, '0')}.jsonl`);
    try {
      this.#newest = new SpoolFile(path, this, 0, openSync(path, 'ax', 0o600));
      this.#nextNumber += 1;
      return this.#newest;
    } catch (error) {
      this.cannotWrite('cannot be written', error);
      return undefined;
    }
  }

  /** Reads the events of a file. Omits events that cannot be read, and reports them. */
  async load(file: SpoolFile | undefined, events: number): Promise<string[]> {
    try {
      const lines = file ? await this.#read(file) : [];
      const texts = lines.filter((line) => parseJson(line) !== undefined);
      const lost = events - texts.length;
      if (lost > 0) this.failed(`has unreadable events (${lost}); their file is kept as *.damaged`);
      return texts;
    } catch (error) {
      this.failed('cannot be read; the file is kept as *.damaged', error);
      return [];
    }
  }

  get hasFsync(): boolean {
    return this.#fsyncTimer !== undefined;
  }

  grown(bytes: number): void {
    this.#bytes += bytes;
    this.#hasGrown = true;
  }

  cannotWrite(problem: string, cause?: unknown): void {
    this.#failedAt = performance.now();
    this.failed(`${problem}; meanwhile events are only in memory`, cause);
  }

  /** @param problem completes the sentence "the spool …" */
  failed(problem: string, cause?: unknown): void {
    const reason = cause === undefined ? '' : ` (${errorMessage(cause)})`;
    this.#report({ code: 'spool', message: `the spool ${problem}${reason}`, ...(cause !== undefined && { cause }) });
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    clearInterval(this.#fsyncTimer);
    await once(this.#lock.close(), 'close');
  }

  async #read(file: SpoolFile, isReported = false): Promise<string[]> {
    try {
      return await file.read();
    } catch (error) {
      if (!TEMPORARY_ERRORS.has(Object(error).code)) throw error;
      if (!isReported) this.failed('cannot be read at the moment and will be retried', error);
      await delay(RETRY_MS, undefined, { ref: false });
      // After `close`, do not read, because another process may own the file. The promise may stay pending: no caller waits for it any more.
      return this.#isClosed ? new Promise(() => undefined) : this.#read(file, true);
    }
  }

  #fsync(): void {
    if (!this.#hasGrown) return;
    this.#hasGrown = false;
    this.#newest?.fsync();
    // Flush the folder as well, because only that makes the names of new files durable.
    fsyncFolder(this.#settings.directory).catch((error) => this.failed(FSYNC_FAILED, error));
  }
}

/** An append-only file of the spool, with one event per line as JSON. */
export class SpoolFile {
  readonly #path: string;
  readonly #spool: Spool;
  #bytes: number;
  #descriptor: number | undefined;

  /** @param descriptor undefined for files of earlier processes, which are only read */
  constructor(path: string, spool: Spool, bytes: number, descriptor: number | undefined) {
    this.#path = path;
    this.#spool = spool;
    this.#bytes = bytes;
    this.#descriptor = descriptor;
  }

  /**
   * Appends an event with one system call. A failed call may leave a partial line. The caller must then call `seal`, which closes the file.
   * The partial line then stays the last line. Readers ignore it, because it has no newline.
   * @param bytes length of the text
   * @returns whether the whole line was written
   */
  append(text: string, bytes: number): boolean {
    if (this.#descriptor === undefined) return false;
    try {
      if (writeSync(this.#descriptor, `${text}\n`) !== bytes + 1) throw new Error('there is no room on the disk');
    } catch (error) {
      this.#spool.cannotWrite('cannot be written', error);
      return false;
    }
    this.#grow(bytes + 1);
    return true;
  }

  async read(): Promise<string[]> {
    const lines = (await readFile(this.#path, 'utf8')).split('\n');
    lines.pop();
    return lines;
  }

  fsync(then = () => {}): void {
    if (this.#descriptor === undefined) return;
    fdatasync(this.#descriptor, (error) => {
      if (error) this.#spool.failed(FSYNC_FAILED, error);
      then();
    });
  }

  seal(): void {
    const descriptor = this.#descriptor;
    if (descriptor === undefined) return;
    const close = () => this.#attempt('cannot be closed', () => closeSync(descriptor));
    if (this.#spool.hasFsync) this.fsync(close);
    else close();
    this.#descriptor = undefined;
  }

  /** Empties the file after all its events are sent, so that it can store further events. */
  empty(): void {
    const descriptor = this.#descriptor;
    if (descriptor === undefined) return;
    this.#attempt(EMPTYING_FAILED, () => {
      ftruncateSync(descriptor);
      this.#grow(-this.#bytes);
    });
  }

  /** Deletes a closed file after all its events are sent. Instead renames a damaged file to *.damaged, which later processes ignore and keep. */
  finish(isDamaged: boolean): void {
    this.#attempt(EMPTYING_FAILED, () => {
      // Make the new name unique. Otherwise it could overwrite an earlier damaged file, because numbers restart when the folder is empty.
      if (isDamaged) renameSync(this.#path, `${this.#path}.${uuidV7()}.damaged`);
      else unlinkSync(this.#path);
      this.#grow(-this.#bytes);
    });
  }

  #attempt(failure: string, action: () => void): void {
    try {
      action();
    } catch (error) {
      this.#spool.failed(failure, error);
    }
  }

  #grow(bytes: number): void {
    this.#bytes += bytes;
    this.#spool.grown(bytes);
  }
}

async function fsyncFolder(directory: string): Promise<void> {
  const folder = await open(directory);
  try {
    await folder.sync();
  } finally {
    await folder.close();
  }
}
