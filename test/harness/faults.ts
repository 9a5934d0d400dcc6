/** What tests do to servers, disks and processes. */

import { existsSync, openSync } from 'node:fs';
import { readdir, readFile } from 'node:fs/promises';
import { setTimeout as delay } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import type { Redis } from 'ioredis';

/**
 * Sends SIGSTOP and resolves when all threads of the process have stopped: the signal alone takes effect some time later, and a busy
 * server may answer until then. `SIGCONT` lets the process go on.
 */
export async function freeze(pid: number): Promise<void> {
  process.kill(pid, 'SIGSTOP');
  while (!(await threadStates(pid)).every((state) => state === 'T')) await delay(1);
}

/** One letter a thread. Source: proc_pid_stat(5); the name before it may hold anything, parentheses too. */
async function threadStates(pid: number): Promise<string[]> {
  const threads = await readdir(`/proc/${pid}/task`);
  const stats = threads.map((thread) => readFile(`/proc/${pid}/task/${thread}/stat`, 'utf8').catch(() => ''));
  return (await Promise.all(stats)).map((stat) => stat.slice(stat.lastIndexOf(')') + 2, stat.lastIndexOf(')') + 3));
}

const FULL = '/dev/full';

/**
 * A descriptor on which every write fails, as on a full disk. Without Linux's device for it the error is another one: that of
 * a file which was opened for reading.
 */
export function openFull(): number {
  return existsSync(FULL) ? openSync(FULL, 'w') : openSync(fileURLToPath(import.meta.url), 'r');
}

/** Leaves no room for another command, as jobs that wait would. */
export async function fillRedis(redis: Redis): Promise<void> {
  const [, used] = /^used_memory:(\d+)/m.exec(await redis.info('memory')) ?? [];
  await redis.config('SET', 'maxmemory', String(Number(used) - 200_000));
}
