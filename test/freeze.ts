import { readdir, readFile } from 'node:fs/promises';
import { setTimeout as delay } from 'node:timers/promises';

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
