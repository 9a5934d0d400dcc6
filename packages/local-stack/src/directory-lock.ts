import { randomUUID } from 'node:crypto';
import { link, readFile, rename, rm, writeFile } from 'node:fs/promises';
import { setTimeout as sleep } from 'node:timers/promises';
import { z } from 'zod';
import { LocalStackError } from './errors.js';
import { identifyProcess, isRunning, type ProcessIdentity, processIdentitySchema } from './process-identity.js';
import { hasErrorCode } from './system-error.js';

const holderSchema = z.object({ owner: processIdentitySchema, servers: z.array(processIdentitySchema) });
type Holder = z.infer<typeof holderSchema>;

/** How long the servers of an owner that was killed may take to notice and end. */
const ORPHAN_GRACE_MS = 20_000;
const POLL_MS = 50;

/** The right to use a data directory, held by this process in a lock file. */
export interface DirectoryLock {
  /** Records a process that uses the directory on this one's behalf and may outlive it by a moment. */
  addServer(pid: number): Promise<void>;
  /** Safe to call again: a lock that someone else has taken since stays theirs. */
  release(): Promise<void>;
}

/**
 * Takes the lock at `path`. A lock whose owner is dead is taken over, but only once the servers it started are gone
 * too: after `kill -9` of the owner they still need a moment to close their files.
 *
 * @throws LocalStackError `directory_in_use`
 */
export async function lockDirectory(path: string, directory: string): Promise<DirectoryLock> {
  const holder: Holder = { owner: await identifyProcess(process.pid), servers: [] };
  const patienceEnds = Date.now() + ORPHAN_GRACE_MS;

  while (!(await createExclusively(path, holder))) {
    const text = await readFile(path, 'utf8').catch(() => undefined);
    if (text === undefined) continue;
    const user = await findUser(parseHolder(text), patienceEnds);
    if (user) {
      throw new LocalStackError(
        'directory_in_use',
        `${directory} is in use by process ${user.pid}. Stop that one first, or choose another directory with METERLINE_DATA_DIR.`,
      );
    }
    await removeStale(path, text);
  }

  let held = true;
  return {
    async addServer(pid) {
      holder.servers.push(await identifyProcess(pid));
      const draft = await writeDraft(path, holder);
      await rename(draft, path);
    },
    async release() {
      if (!held) return;
      held = false;
      await rm(path, { force: true });
    },
  };
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
  const draft = await writeDraft(path, holder);
  try {
    await link(draft, path);
    return true;
  } catch (error) {
    if (hasErrorCode(error, 'EEXIST')) return false;
    throw error;
  } finally {
    await rm(draft, { force: true });
  }
}

async function writeDraft(path: string, holder: Holder): Promise<string> {
  const draft = `${path}.${randomUUID()}`;
  await writeFile(draft, JSON.stringify(holder), { mode: 0o600 });
  return draft;
}

/** Undefined for a file that no version of this code wrote; it protects nobody. */
function parseHolder(text: string): Holder | undefined {
  try {
    return holderSchema.safeParse(JSON.parse(text)).data;
  } catch {
    return undefined;
  }
}

/** Moves the file away before deleting it: if a rival took the lock over in between, it gets its file back. */
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
