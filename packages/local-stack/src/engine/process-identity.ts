import { readFile } from 'node:fs/promises';
import { z } from 'zod';
import { hasErrorCode } from '../errors.js';

/**
 * A process, told apart from a later one with the same pid. `born` is the kernel's start time in clock ticks since
 * boot, or null where there is no /proc.
 */
export const processIdentitySchema = z.object({ pid: z.int().positive(), born: z.string().nullable() });
export type ProcessIdentity = z.infer<typeof processIdentitySchema>;

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
