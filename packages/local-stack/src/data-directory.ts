/**
 * Manages the directory with the data, the logs and the secret of a local stack (ClickHouse, Redis and the services). A process locks the
 * directory with flock(2) on `stack.lock`. All child processes inherit the lock, and the kernel releases it when the last of them ends. A
 * start after `kill -9` therefore waits until the old servers are gone. Without the lock, a second Redis could use the same directory
 * (docs/decisions/0013).
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

/** LOCK_EX | LOCK_NB of flock(2) */
const LOCK_EXCLUSIVE_NONBLOCKING = 2 | 4;
const ORPHANS_TIMEOUT_MS = 20_000;
const POLL_MS = 50;

const SECRET_FILE = 'secret.json';
const secretSchema = z.object({ secret: z.string().min(16) });

export class DataDirectory {
  #isOpen = true;

  private constructor(
    readonly path: string,
    /** File descriptor of `stack.lock`. Every process that uses the data must inherit it. */
    readonly lock: number,
    /** A secret that is generated once. Passwords are derived from it. */
    readonly secret: string,
  ) {}

  /**
   * Creates the directory if it is missing, with access only for its owner, and locks it.
   * @throws LocalStackError if the directory is unusable or in use, or if its secret file is damaged
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

  /** Releases the lock of this process. Running child processes still hold it. Safe to call again. */
  close(): void {
    if (this.#isOpen) closeSync(this.lock);
    this.#isOpen = false;
  }
}

/**
 * Locks the directory. If the directory is locked and the locking process still runs, fails immediately. If that process is gone, waits for
 * its remaining child processes.
 * @throws LocalStackError if the directory is unusable or in use
 */
async function lockOf(path: string): Promise<number> {
  const file = join(path, 'stack.lock');
  const lock = await openIn(path, file);
  for (const end = performance.now() + ORPHANS_TIMEOUT_MS; !tryLock(lock); await sleep(POLL_MS)) {
    const owner = Number(readFileSync(file, 'utf8'));
    if (!(owner > 0 && isRunning(owner)) && performance.now() < end) continue;
    closeSync(lock);
    const user =
      owner > 0 && isRunning(owner) ? `process ${owner}` : 'a process of an earlier start, such as redis-server';
    throw new LocalStackError(
      `${path} is in use by ${user}. Stop that process, or set METERLINE_DATA_DIR to another directory.`,
    );
  }
  ftruncateSync(lock);
  writeSync(lock, String(process.pid));
  return lock;
}

function tryLock(lock: number): boolean {
  // An empty path selects the C library that this process has already loaded.
  open({ library: 'libc', path: '' });
  const [retType, paramsType] = [DataType.I32, [DataType.I32, DataType.I32]] as const;
  const paramsValue = [lock, LOCK_EXCLUSIVE_NONBLOCKING];
  return load({ library: 'libc', funcName: 'flock', retType, paramsType: [...paramsType], paramsValue }) === 0;
}

/** Sends a signal. Returns false if the process does not exist. */
export function signalTo(pid: number, signal: NodeJS.Signals | 0): boolean {
  try {
    return process.kill(pid, signal);
  } catch (error) {
    if (hasErrorCode(error, 'ESRCH')) return false;
    throw error;
  }
}

/** Returns whether a process runs. An error means yes: the process exists, but belongs to another user, so the signal is not permitted. */
function isRunning(pid: number): boolean {
  try {
    return signalTo(pid, 0);
  } catch {
    return true;
  }
}

async function openIn(path: string, file: string): Promise<number> {
  try {
    await mkdir(path, { recursive: true, mode: 0o700 });
    return openSync(file, 'a', 0o600);
  } catch (cause) {
    const reason = errorMessage(cause).replace(/, \w+ '.*$/s, '');
    throw new LocalStackError(
      `${path} cannot store the data (${reason}). Set METERLINE_DATA_DIR to a writable directory.`,
      { cause },
    );
  }
}

export async function writePrivateFile(path: string, content: unknown): Promise<void> {
  await writePrivateText(path, `${JSON.stringify(content, null, 2)}\n`);
}

/** Reads a JSON file. Returns undefined if it does not exist. @throws LocalStackError if it is unreadable or does not match the schema */
export async function readPrivateFile<T>(path: string, schema: z.ZodType<T>): Promise<T | undefined> {
  try {
    return schema.parse(JSON.parse(await readFile(path, 'utf8')));
  } catch (cause) {
    if (hasErrorCode(cause, 'ENOENT')) return undefined;
    const issues = cause instanceof z.ZodError ? cause.issues : undefined;
    const reason =
      issues?.map(({ path: at, message }) => `${at.join('.')}: ${message}`).join('; ') ?? errorMessage(cause);
    throw new LocalStackError(`${path} is damaged (${reason}). Fix or delete it; the next start creates a new one.`, {
      cause,
    });
  }
}

/** Derives a user's password. @param secret the secret of the data directory, or the password of an admin, who has all rights anyway */
export function passwordOf(secret: string, user: string): string {
  return createHash('sha256').update(`${secret} ${user}`).digest('hex');
}
