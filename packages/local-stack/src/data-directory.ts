/**
 * The directory with a stack's data, logs and secret, and the right to use it: a lock of the kernel (flock(2)) on `stack.lock`, which every
 * child process inherits. It ends with the last process that holds it, however that ends, so a start after `kill -9` waits for the servers
 * that are left. Redis itself refuses no second start in its directory (docs/decisions/0013).
 */
import { createHash, randomBytes } from 'node:crypto';
import { closeSync, ftruncateSync, openSync, readFileSync, writeSync } from 'node:fs';
import { mkdir, readFile } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { writePrivateText } from '@meterline/service/files';
import { DataType, load, open } from 'ffi-rs';
import { z } from 'zod';
import { errorMessage, hasErrorCode, LocalStackError } from './errors.js';

const LOCK_EXCLUSIVELY_AT_ONCE = 2 | 4;
/** How long the child processes of a parent that was killed may take to end. */
const ORPHANS_TIMEOUT_MS = 20_000;
const POLL_MS = 50;

const SECRET_FILE = 'secret.json';
const secretSchema = z.object({ secret: z.string().min(16) });

export class DataDirectory {
  #isOpen = true;

  private constructor(
    /** Absolute. */
    readonly path: string,
    /** The open `stack.lock`, to be inherited by every process that uses the data. */
    readonly lock: number,
    /** Made once, of letters and digits. Passwords are derived from it. */
    readonly secret: string,
  ) {}

  /**
   * Creates the directory if need be, for its owner alone, and takes its lock.
   * @throws LocalStackError when it cannot be used, is in use, or a file of it is damaged
   */
  static async open(directory: string): Promise<DataDirectory> {
    const path = resolve(directory);
    const lock = await lockOf(path);
    try {
      const kept = await readPrivateFile(join(path, SECRET_FILE), secretSchema);
      const { secret } = kept ?? { secret: randomBytes(32).toString('hex') };
      if (!kept) await writePrivateFile(join(path, SECRET_FILE), { secret });
      return new DataDirectory(path, lock, secret);
    } catch (error) {
      closeSync(lock);
      throw error;
    }
  }

  file(name: string): string {
    return join(this.path, name);
  }

  /** Gives the lock back; processes that still run keep it. Safe to call again. */
  close(): void {
    if (this.#isOpen) closeSync(this.lock);
    this.#isOpen = false;
  }
}

/**
 * @throws LocalStackError when it cannot be used, or is in use: at once if the process that took it still runs, or else after
 * a while
 */
async function lockOf(path: string): Promise<number> {
  const file = join(path, 'stack.lock');
  const lock = await openIn(path, file);
  for (const end = performance.now() + ORPHANS_TIMEOUT_MS; !take(lock); await sleep(POLL_MS)) {
    const owner = Number(readFileSync(file, 'utf8'));
    if (!(owner > 0 && isRunning(owner)) && performance.now() < end) continue;
    closeSync(lock);
    const user =
      owner > 0 && isRunning(owner)
        ? `process ${owner}`
        : 'a process that an earlier start has left, such as redis-server';
    throw new LocalStackError(
      `${path} is in use by ${user}. Stop that one first, or choose another directory with METERLINE_DATA_DIR.`,
    );
  }
  ftruncateSync(lock);
  writeSync(lock, String(process.pid));
  return lock;
}

/** @returns false when another process holds it */
function take(lock: number): boolean {
  // The C library of this process, whichever it is.
  open({ library: 'libc', path: '' });
  const [retType, paramsType] = [DataType.I32, [DataType.I32, DataType.I32]] as const;
  const paramsValue = [lock, LOCK_EXCLUSIVELY_AT_ONCE];
  return load({ library: 'libc', funcName: 'flock', retType, paramsType: [...paramsType], paramsValue }) === 0;
}

/** @returns false when there is no such process */
export function signalTo(pid: number, signal: NodeJS.Signals | 0): boolean {
  try {
    return process.kill(pid, signal);
  } catch (error) {
    if (hasErrorCode(error, 'ESRCH')) return false;
    throw error;
  }
}

/** One that may not be signalled runs, as another user. */
function isRunning(pid: number): boolean {
  try {
    return signalTo(pid, 0);
  } catch {
    return true;
  }
}

/** Makes the directory, and a file in it. */
async function openIn(path: string, file: string): Promise<number> {
  try {
    await mkdir(path, { recursive: true, mode: 0o700 });
    return openSync(file, 'a', 0o600);
  } catch (cause) {
    const reason = errorMessage(cause).replace(/, \w+ '.*$/s, '');
    throw new LocalStackError(
      `${path} cannot hold the data (${reason}). Choose a directory that can be written to with METERLINE_DATA_DIR.`,
      { cause },
    );
  }
}

/** Replaces a file of JSON, as a whole, that only its owner may read. */
export async function writePrivateFile(path: string, content: unknown): Promise<void> {
  await writePrivateText(path, `${JSON.stringify(content, null, 2)}\n`);
}

/**
 * Undefined if there is no such file.
 * @throws LocalStackError if it cannot be read or its content does not match the schema
 */
export async function readPrivateFile<T>(path: string, schema: z.ZodType<T>): Promise<T | undefined> {
  try {
    return schema.parse(JSON.parse(await readFile(path, 'utf8')));
  } catch (cause) {
    if (hasErrorCode(cause, 'ENOENT')) return undefined;
    const issues = cause instanceof z.ZodError ? cause.issues : undefined;
    const reason =
      issues?.map(({ path: at, message }) => `${at.join('.')}: ${message}`).join('; ') ?? errorMessage(cause);
    throw new LocalStackError(`${path} is damaged (${reason}). Fix it, or delete it: the next start makes a new one.`, {
      cause,
    });
  }
}

/** The password of a user. Anybody with the secret, or the password of a server's owner, may do everything anyway. */
export function passwordOf(secret: string, user: string): string {
  return createHash('sha256').update(`${secret} ${user}`).digest('hex');
}
