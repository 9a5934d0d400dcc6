/** Programs and processes of the tests: what is built where, how they print a table, what Linux says of a process, what tests do to one. */
import type { ChildProcess } from 'node:child_process';
import { existsSync, openSync, readFileSync } from 'node:fs';
import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';

const ROOT = fileURLToPath(new URL('../..', import.meta.url));

/** The file to run with Node. @param program below `test`, such as fuzz/main */
export function testProgram(program: string): string {
  return join(ROOT, 'dist', `${program}.js`);
}

/** What `npm start` runs when everything is made. */
export const START = join(ROOT, 'packages/local-stack/dist/start/main.js');

/** The build of the web page. */
export const PAGE_FOLDER = join(ROOT, 'packages/dashboard/dist/page');

/** A Markdown table, so that it can be pasted. Numbers are written with commas. */
export function markdownTable(titles: readonly string[], rows: readonly (readonly (string | number)[])[]): string {
  const line = (cells: readonly (string | number)[]) =>
    `| ${cells.map((cell) => (typeof cell === 'number' ? cell.toLocaleString('en') : cell)).join(' | ')} |`;
  const isNumber = (column: number) => rows.length > 0 && rows.every((row) => typeof row[column] === 'number');
  return [line(titles), line(titles.map((_, column) => (isNumber(column) ? '---:' : '---'))), ...rows.map(line)].join(
    '\n',
  );
}

/** Resolves when the process has printed the text, with all that it has printed; rejects if it ends before. */
export function said(child: ChildProcess, text: string): Promise<string> {
  return new Promise((resolve, reject) => {
    let output = '';
    const read = (chunk: Buffer) => {
      output += chunk.toString('utf8');
      if (output.includes(text)) resolve(output);
    };
    child.stdout?.on('data', read);
    child.stderr?.on('data', read);
    child.once('exit', () => reject(new Error(`npm start ended before it said ${text}:\n${output}`)));
  });
}

/** The memory that the process has resident, or the most that it ever had, in MiB. Source: proc_pid_status(5). */
export function residentMiB(pid: number, which: 'VmRSS' | 'VmHWM'): number | undefined {
  const kib = new RegExp(`^${which}:\\s+(\\d+) kB$`, 'm').exec(fileOf(pid, 'status') ?? '')?.[1];
  return kib === undefined ? undefined : Number(kib) / 1024;
}

/** Linux gives processor time to programs in hundredths of a second on every platform (USER_HZ). */
const MS_PER_TICK = 10;

/** The processor time that the process has taken so far, in milliseconds. Source: proc_pid_stat(5). */
export function processorMs(pid: number): number | undefined {
  // The second field, the name, may hold anything; after it come the state, as field 3, and the times, as 14 and 15.
  const fields = fileOf(pid, 'stat')?.split(') ').at(-1)?.split(' ');
  return fields && (Number(fields[11]) + Number(fields[12])) * MS_PER_TICK;
}

function fileOf(pid: number, name: string): string | undefined {
  try {
    return readFileSync(`/proc/${pid}/${name}`, 'utf8');
  } catch {
    return undefined;
  }
}

/**
 * Sends SIGSTOP and resolves when all threads of the process have stopped: the signal alone takes effect some time later, and a busy
 * server may answer until then. `SIGCONT` lets the process go on.
 */
export async function freeze(pid: number): Promise<void> {
  process.kill(pid, 'SIGSTOP');
  while (!(await threadStates(pid)).every((state) => state === 'T')) await delay(1);
}

/** Does `work` while the process stands still, and lets it go on afterwards. */
export async function whileFrozen<T>(pid: number, work: () => Promise<T>): Promise<T> {
  await freeze(pid);
  return work().finally(() => process.kill(pid, 'SIGCONT'));
}

/** One letter for the state of each thread, none without Linux. Source: proc_pid_stat(5); the name before it may hold parentheses. */
async function threadStates(pid: number): Promise<string[]> {
  const threads = await readdir(`/proc/${pid}/task`).catch(() => []);
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
