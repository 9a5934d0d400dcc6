/**
 * Events on disk: a folder of files. A file is removed when all its events are sent; how far it is sent is written nowhere,
 * because events that are sent again count once. So a crash after each step leaves:
 *
 * 1. the event's line is written: an event that the next start sends. It is in the operating system's memory, which `kill -9`
 *    does not touch; a power cut does, unless it was forced to the disk
 * 2. the event is sent: the same, so it is sent twice
 * 3. the file is removed or emptied: nothing
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
/** After a failure nothing is written for so long, so that a full disk costs one attempt in a second and not one per event. */
const HOLD_OFF_MS = 1_000;
/** Errors of the system that say nothing about the file: it can be read in a moment. */
const PASSING = new Set(['EMFILE', 'ENFILE', 'ENOMEM', 'EAGAIN']);
/** In words, to follow "the spool". */
const NOT_EMPTIED = 'cannot be emptied; its events are sent again at the next start';
const NOT_FORCED = 'cannot be forced to the disk';

type SpoolSettings = NonNullable<CheckedOptions['spool']>;

export class Spool {
  /** The files that earlier processes have left, oldest first, and how many whole lines each has. */
  readonly recovered: { readonly file: SpoolFile; readonly events: number }[] = [];
  readonly #settings: SpoolSettings;
  readonly #lock: Server;
  readonly #report: Report;
  readonly #forcing: NodeJS.Timeout | undefined;
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
    if (settings.fsyncMs !== undefined) this.#forcing = setInterval(() => this.#force(), settings.fsyncMs).unref();
  }

  /** Takes the folder for this process, and finds what earlier ones have left. @throws EmitterError */
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

  /** Whether so many bytes may be written now. */
  takes(bytes: number): boolean {
    if (this.#failedAt !== undefined && performance.now() - this.#failedAt < HOLD_OFF_MS) return false;
    this.#failedAt = undefined;
    if (this.#bytes + bytes <= this.#settings.maxBytes) return true;
    this.cannotWrite(`is full, with ${this.#settings.maxBytes} bytes`);
    return false;
  }

  /** A new file to append to; undefined when there can be none, which is reported. */
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

  /** The events of a file that can be read; that there are fewer than `events` is reported. */
  async load(file: SpoolFile | undefined, events: number): Promise<string[]> {
    try {
      const lines = file ? await this.#read(file) : [];
      const texts = lines.filter((line) => parseJson(line) !== undefined);
      const lost = events - texts.length;
      if (lost > 0) this.failed(`has ${lost} events that cannot be read; their file is kept, with the end .damaged`);
      return texts;
    } catch (error) {
      this.failed('cannot be read; its file is kept, with the end .damaged', error);
      return [];
    }
  }

  /** Whether writes are forced to the disk. */
  get isForcing(): boolean {
    return this.#forcing !== undefined;
  }

  /** A file has grown by so many bytes, fewer than none when it is smaller. */
  grown(bytes: number): void {
    this.#bytes += bytes;
    this.#hasGrown = true;
  }

  cannotWrite(why: string, cause?: unknown): void {
    this.#failedAt = performance.now();
    this.failed(`${why}; events are in memory alone meanwhile`, cause);
  }

  failed(what: string, cause?: unknown): void {
    const reason = cause === undefined ? '' : ` (${errorMessage(cause)})`;
    this.#report({ code: 'spool', message: `the spool ${what}${reason}`, ...(cause !== undefined && { cause }) });
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    clearInterval(this.#forcing);
    await once(this.#lock.close(), 'close');
  }

  /** The lines of a file, as soon as the system can open files again. */
  async #read(file: SpoolFile, isTold = false): Promise<string[]> {
    try {
      return await file.read();
    } catch (error) {
      if (!PASSING.has(Object(error).code)) throw error;
      if (!isTold) this.failed('cannot be read at the moment, which is tried again', error);
      await delay(HOLD_OFF_MS, undefined, { ref: false });
      // By now it may be another process's, and nobody waits for its events.
      return this.#isClosed ? new Promise(() => undefined) : this.#read(file, true);
    }
  }

  #force(): void {
    if (!this.#hasGrown) return;
    this.#hasGrown = false;
    this.#newest?.force();
    // The names of new files.
    forceFolder(this.#settings.directory).catch((error) => this.failed(NOT_FORCED, error));
  }
}

/** A file of the spool: events in JSON, one per line, only ever appended to. */
export class SpoolFile {
  readonly #path: string;
  readonly #spool: Spool;
  #bytes: number;
  #descriptor: number | undefined;

  /** @param descriptor undefined for a file of an earlier process, which nothing is appended to */
  constructor(path: string, spool: Spool, bytes: number, descriptor: number | undefined) {
    this.#path = path;
    this.#spool = spool;
    this.#bytes = bytes;
    this.#descriptor = descriptor;
  }

  /**
   * Appends an event with one call of the system. When that fails, part of the line may be there, and the file must be sealed,
   * so that no line comes after it: it has no end, and is not read.
   * @param bytes the length of the text
   * @returns whether the whole line is written
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

  /** All whole lines. @throws the error of the system */
  async read(): Promise<string[]> {
    const lines = (await readFile(this.#path, 'utf8')).split('\n');
    lines.pop();
    return lines;
  }

  /** Forces what was written to the disk. */
  force(then = () => {}): void {
    if (this.#descriptor === undefined) return;
    fdatasync(this.#descriptor, (error) => {
      if (error) this.#spool.failed(NOT_FORCED, error);
      then();
    });
  }

  /** Nothing more is appended. */
  seal(): void {
    const descriptor = this.#descriptor;
    if (descriptor === undefined) return;
    const close = () => this.#attempt('cannot be closed', () => closeSync(descriptor));
    if (this.#spool.isForcing) this.force(close);
    else close();
    this.#descriptor = undefined;
  }

  /** All its events are sent, and more will be appended. */
  empty(): void {
    const descriptor = this.#descriptor;
    if (descriptor === undefined) return;
    this.#attempt(NOT_EMPTIED, () => {
      ftruncateSync(descriptor);
      this.#grow(-this.#bytes);
    });
  }

  /** All its events are sent, and it is sealed. A damaged file is renamed: no later start looks at it, and nothing is lost. */
  finish(isDamaged: boolean): void {
    this.#attempt(NOT_EMPTIED, () => {
      // Numbers begin again when no file is left, and one that was set aside before must stay.
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

async function forceFolder(directory: string): Promise<void> {
  const folder = await open(directory);
  try {
    await folder.sync();
  } finally {
    await folder.close();
  }
}
