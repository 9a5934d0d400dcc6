/** Waits until a process answers. If it never does, the error quotes its log. */
import { type FileHandle, open, readFile } from 'node:fs/promises';
import { setTimeout as sleep } from 'node:timers/promises';
import { LocalStackError } from '../errors.js';

const POLL_MS = 25;
const TAIL_LINES = 12;

/** How a server's process ended. */
export interface ServerExit {
  code: number | null;
  signal: NodeJS.Signals | null;
}

export function describeExit({ code, signal }: ServerExit): string {
  return signal ?? `exit code ${code}`;
}

/** What one run of a process writes to its log file. */
export class LogFile {
  private constructor(
    readonly path: string,
    private readonly handle: FileHandle,
    private readonly start: number,
  ) {}

  static async open(path: string): Promise<LogFile> {
    const handle = await open(path, 'a', 0o600);
    const { size } = await handle.stat();
    return new LogFile(path, handle, size);
  }

  /** To be inherited by the process that is spawned before `close`. */
  get fd(): number {
    return this.handle.fd;
  }

  close(): Promise<void> {
    return this.handle.close();
  }

  /** The last lines since `open`, for an error message. */
  async tail(): Promise<string> {
    const content = await readFile(this.path);
    // It is shorter than at the start if it has been rotated since.
    const text = content.subarray(content.length < this.start ? 0 : this.start).toString('utf8');
    return text.trimEnd().split('\n').slice(-TAIL_LINES).join('\n');
  }
}

export interface StartingProcess {
  /** What a message calls it. */
  name: string;
  /** Resolves once it is ready; called again while it rejects. */
  answers: () => Promise<unknown>;
  exited: Promise<ServerExit>;
  kill: () => Promise<void>;
  log: LogFile;
  deadlineMs: number;
}

/**
 * Waits until the process answers. If that does not happen, the process is gone when this rejects.
 *
 * @throws LocalStackError `exited_early` or `not_ready_in_time`, with the tail of the log
 */
export async function waitUntilReady(starting: StartingProcess): Promise<void> {
  const { name, answers, deadlineMs, log } = starting;
  const deadline = Date.now() + deadlineMs;
  const gone = starting.exited.then(() => 'gone' as const);
  for (;;) {
    const attempt = answers().then(
      () => 'ready' as const,
      (error: unknown) => error,
    );
    const outcome = await Promise.race([gone, attempt]);
    if (outcome === 'ready') return;
    if (outcome === 'gone') throw await exitedEarly(starting);
    if (Date.now() > deadline) {
      await starting.kill();
      const what = `${name} did not answer within ${deadlineMs / 1000} s`;
      throw new LocalStackError('not_ready_in_time', await withTail(what, log), { cause: outcome });
    }
    await sleep(POLL_MS);
  }
}

/** How our services begin a line that says why they do not start. */
const OWN_WORDS = /^meterline-[a-z]+: /;

/** Why a process that has exited, or is about to, never became ready: in its own words if it ended with some. */
export async function exitedEarly({
  name,
  exited,
  log,
}: Pick<StartingProcess, 'name' | 'exited' | 'log'>): Promise<LocalStackError> {
  const exit = await exited;
  const lines = (await log.tail()).split('\n');
  const reasons = lines.slice(lines.findLastIndex((line) => !OWN_WORDS.test(line)) + 1);
  if (reasons.length > 0) {
    return new LocalStackError('exited_early', reasons.map((line) => line.replace(OWN_WORDS, '')).join('; '));
  }
  const what = `${name} ended before it was ready (${describeExit(exit)})`;
  return new LocalStackError('exited_early', await withTail(what, log));
}

async function withTail(what: string, log: LogFile): Promise<string> {
  return `${what}. The end of ${log.path}:\n${await log.tail()}`;
}
