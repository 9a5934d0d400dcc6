/**
 * The folder that holds a stack's data and logs, and the right to use it: one lock file for all of it.
 *
 * The lock names its owner and the processes that the owner started. It is taken over when the owner is dead, but only
 * once those processes are gone too: after `kill -9` of the owner they need a moment to close their files. Processes
 * are known by pid and start time, so a reused pid does not keep the lock. Libraries such as proper-lockfile
 * judge a lock by its age instead: they refuse a restart for seconds after `kill -9`, hand over the lock of an owner
 * that was suspended, and know nothing of the processes it started.
 */
import { randomUUID } from 'node:crypto';
import { link, mkdir, mkdtemp, readFile, rename, rm, rmdir, stat, writeFile } from 'node:fs/promises';
import { dirname, join, resolve } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { z } from 'zod';
import { hasErrorCode, LocalStackError, systemReason } from '../errors.js';
import { writePrivateFile } from '../private-file.js';

const LOCK = 'stack.lock';

/**
 * A process, told apart from a later one with the same pid. `born` is the kernel's start time in clock ticks since
 * boot, or null where there is no /proc.
 */
const processIdentitySchema = z.object({ pid: z.int().positive(), born: z.string().nullable() });
export type ProcessIdentity = z.infer<typeof processIdentitySchema>;

const holderSchema = z.object({ owner: processIdentitySchema, servers: z.array(processIdentitySchema) });
type Holder = z.infer<typeof holderSchema>;

/** How long the processes of an owner that was killed may take to notice and end. */
const ORPHAN_GRACE_MS = 20_000;
const POLL_MS = 50;

export class DataDirectory {
  #servers: ProcessIdentity[] = [];
  #writing: Promise<void> = Promise.resolve();
  #held = true;

  private constructor(
    /** Absolute. */
    readonly path: string,
    private readonly owner: ProcessIdentity,
  ) {}

  /**
   * Creates the directory if need be, for its owner alone, and takes its lock.
   *
   * @throws LocalStackError `data_directory_unusable` or `directory_in_use`
   */
  static async open(path: string): Promise<DataDirectory> {
    const directory = new DataDirectory(resolve(path), await identifyProcess(process.pid));
    await makeDirectory(directory.path);
    await takeLock(directory.file(LOCK), directory.path, { owner: directory.owner, servers: [] });
    return directory;
  }

  file(name: string): string {
    return join(this.path, name);
  }

  /** Records a process that uses the directory for this one and may outlive it by a moment. After `close` nothing is written. */
  async addProcess(pid: number): Promise<void> {
    // One at a time: the last write has them all.
    const written = this.#writing.then(async () => {
      // A server that ends as it starts has given the lock back by now; the file would lock the directory for good.
      if (!this.#held) return;
      const alive = await Promise.all(this.#servers.map(isRunning));
      this.#servers = [...this.#servers.filter((_server, index) => alive[index]), await identifyProcess(pid)];
      await writePrivateFile(this.file(LOCK), { owner: this.owner, servers: this.#servers });
    });
    this.#writing = written.catch(() => undefined);
    await written;
  }

  /** Gives the lock back. Safe to call again: a lock that another process has taken since stays there. */
  async close(): Promise<void> {
    if (!this.#held) return;
    this.#held = false;
    await this.#writing;
    await rm(this.file(LOCK), { force: true });
  }
}

/** One level at a time: where nothing can be created, as in /proc, Node's recursive mkdir never ends. */
async function makeDirectory(path: string): Promise<void> {
  try {
    const missing: string[] = [];
    for (let level = path; !(await exists(level)); level = dirname(level)) missing.unshift(level);
    for (const level of missing) await mkdir(level, { mode: 0o700 });
    // Whether it can be written to.
    await rmdir(await mkdtemp(join(path, 'probe-')));
  } catch (cause) {
    throw new LocalStackError(
      'data_directory_unusable',
      `${path} cannot hold the data (${systemReason(cause)}). Choose a directory that can be written to with METERLINE_DATA_DIR.`,
      { cause },
    );
  }
}

async function exists(path: string): Promise<boolean> {
  try {
    await stat(path);
    return true;
  } catch (error) {
    if (hasErrorCode(error, 'ENOENT')) return false;
    throw error;
  }
}

/** @throws LocalStackError `directory_in_use` */
async function takeLock(lock: string, directory: string, holder: Holder): Promise<void> {
  const patienceEnds = Date.now() + ORPHAN_GRACE_MS;
  while (!(await createExclusively(lock, holder))) {
    const text = await readFile(lock, 'utf8').catch(() => undefined);
    if (text === undefined) continue;
    const user = await findUser(parseHolder(text), patienceEnds);
    if (user) {
      throw new LocalStackError(
        'directory_in_use',
        `${directory} is in use by process ${user.pid}. Stop that one first, or choose another directory with METERLINE_DATA_DIR.`,
      );
    }
    await removeStale(lock, text);
  }
}

/** The process that keeps the directory from being used; waits for orphaned servers until patience ends. */
async function findUser(holder: Holder | undefined, patienceEnds: number): Promise<ProcessIdentity | undefined> {
  if (!holder) return undefined;
  if (await isRunning(holder.owner)) return holder.owner;
  for (const server of holder.servers) {
    while (await isRunning(server)) {
      if (Date.now() > patienceEnds) return server;
      await sleep(POLL_MS);
    }
  }
  return undefined;
}

/** Creates the file with its whole content at once, so that no reader ever sees half of it. */
async function createExclusively(path: string, holder: Holder): Promise<boolean> {
  const draft = `${path}.${randomUUID()}`;
  try {
    // On a full disk this fails after it has created the file.
    await writeFile(draft, JSON.stringify(holder), { mode: 0o600 });
    await link(draft, path);
    return true;
  } catch (error) {
    if (hasErrorCode(error, 'EEXIST')) return false;
    throw error;
  } finally {
    await rm(draft, { force: true });
  }
}

/** Undefined for a file that no version of this code wrote; it protects nobody. */
function parseHolder(text: string): Holder | undefined {
  try {
    return holderSchema.safeParse(JSON.parse(text)).data;
  } catch {
    return undefined;
  }
}

/** Moves the file away before deleting it: if another process took the lock over in between, it gets its file back. */
async function removeStale(path: string, judged: string): Promise<void> {
  const aside = `${path}.${randomUUID()}`;
  try {
    await rename(path, aside);
  } catch {
    return;
  }
  const removed = await readFile(aside, 'utf8');
  if (removed !== judged) await link(aside, path).catch(() => undefined);
  await rm(aside, { force: true });
}

export async function identifyProcess(pid: number): Promise<ProcessIdentity> {
  return { pid, born: (await readProcStat(pid))?.born ?? null };
}

/** A zombie does not count as running: it holds neither files nor ports. */
export async function isRunning({ pid, born }: ProcessIdentity): Promise<boolean> {
  try {
    process.kill(pid, 0);
  } catch (error) {
    // Not permitted to signal it: it exists.
    if (!hasErrorCode(error, 'EPERM')) return false;
  }
  const stat = await readProcStat(pid);
  if (!stat) return true;
  return stat.state !== 'Z' && (born === null || born === stat.born);
}

/** State and start time from /proc (proc(5), `/proc/pid/stat`, fields 3 and 22), undefined where there is none. */
async function readProcStat(pid: number): Promise<{ state: string; born: string } | undefined> {
  const text = await readFile(`/proc/${pid}/stat`, 'utf8').catch(() => '');
  // Field 2 is the command's name in parentheses and may itself hold spaces and parentheses.
  const fields = text.slice(text.lastIndexOf(')') + 2).split(' ');
  const [state, born] = [fields[0], fields[19]];
  return state && born ? { state, born } : undefined;
}
