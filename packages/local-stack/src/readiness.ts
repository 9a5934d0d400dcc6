import { setTimeout as sleep } from 'node:timers/promises';
import { LocalStackError } from './errors.js';
import type { LogFile } from './log-file.js';
import type { ServerExit } from './running-server.js';

const POLL_MS = 25;

export interface StartingProcess {
  /** What a message calls it. */
  name: string;
  /** Resolves once it is ready; asked again and again while it rejects. */
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
  const { answers, deadlineMs } = starting;
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
      const what = `${starting.name} did not answer within ${deadlineMs / 1000} s`;
      throw new LocalStackError('not_ready_in_time', await withTail(what, starting.log), { cause: outcome });
    }
    await sleep(POLL_MS);
  }
}

/** How a service of ours begins a line that says why it does not start. */
const OWN_WORDS = /^meterline-[a-z]+: /;

/** What a service itself says about its end: that is for people, and the rest of its log is not. */
function explanations(tail: string): string[] {
  const lines = tail.split('\n');
  const last = lines.findLastIndex((line) => !OWN_WORDS.test(line));
  return lines.slice(last + 1).map((line) => line.replace(OWN_WORDS, ''));
}

/** Why a process that has exited, or is about to, never became ready. */
export async function exitedEarly({
  name,
  exited,
  log,
}: Pick<StartingProcess, 'name' | 'exited' | 'log'>): Promise<LocalStackError> {
  const exit = await exited;
  const explained = explanations(await log.tail());
  if (explained.length > 0) return new LocalStackError('exited_early', explained.join('; '));
  const what = `${name} ended before it was ready (${describeExit(exit)})`;
  return new LocalStackError('exited_early', await withTail(what, log));
}

export function describeExit({ code, signal }: ServerExit): string {
  return signal ?? `exit code ${code}`;
}

async function withTail(what: string, log: LogFile): Promise<string> {
  return `${what}. The end of ${log.path}:\n${await log.tail()}`;
}
