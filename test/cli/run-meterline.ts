import { spawn } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { asRedisUser } from '../harness/redis-users.js';

const ROOT = fileURLToPath(new URL('../..', import.meta.url));
const BIN = fileURLToPath(new URL('../../packages/cli/bin/meterline.js', import.meta.url));

export interface MeterlineRun {
  readonly code: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

export interface MeterlineOptions {
  /** On top of PATH, HOME and TZ only, so that a developer's own variables change nothing. */
  readonly env?: Readonly<Record<string, string>>;
  /** What is typed: at once, or in answer to what appears on stderr. */
  readonly stdin?: string | { readonly at: string; readonly answer: () => Promise<string> };
  /** Default: the root of the checkout. */
  readonly cwd?: string;
  /** Ends the command as soon as this appears on stderr. */
  readonly interruptAt?: string | RegExp;
  /** Ends the command when this resolves. */
  readonly interruptOn?: Promise<unknown>;
  /** What ends it; default: SIGINT. */
  readonly interruptWith?: NodeJS.Signals;
}

/** Runs the real command as a process of its own. */
export async function runMeterline(args: readonly string[], options: MeterlineOptions = {}): Promise<MeterlineRun> {
  const child = spawn(process.execPath, [BIN, ...args], {
    cwd: options.cwd ?? ROOT,
    env: {
      PATH: process.env.PATH,
      HOME: process.env.HOME,
      TZ: process.env.TZ,
      METERLINE_DATA_DIR: 'none',
      XDG_CONFIG_HOME: 'none',
      ...asRedisUser(options.env ?? {}, 'operator'),
    },
  });
  let stdout = '';
  let stderr = '';
  void options.interruptOn?.then(() => child.kill(options.interruptWith ?? 'SIGINT'));
  child.stdout.setEncoding('utf8').on('data', (chunk: string) => {
    stdout += chunk;
  });
  child.stderr.setEncoding('utf8').on('data', (chunk: string) => {
    const before = stderr;
    stderr += chunk;
    const { interruptAt, interruptWith = 'SIGINT', stdin } = options;
    // Once: a second one would end the process at once.
    if (interruptAt !== undefined && holds(stderr, interruptAt) && !holds(before, interruptAt))
      child.kill(interruptWith);
    if (typeof stdin === 'object' && stderr.includes(stdin.at) && !before.includes(stdin.at))
      stdin.answer().then(
        (text) => child.stdin.end(text),
        (error: unknown) => child.stdin.destroy(error instanceof Error ? error : new Error(String(error))),
      );
  });
  if (typeof options.stdin !== 'object') child.stdin.end(options.stdin ?? '');
  return new Promise((resolve, reject) => {
    child.stdin.once('error', reject);
    child.once('error', reject);
    child.once('close', (code) => resolve({ code, stdout, stderr }));
  });
}

export function holds(text: string, wanted: string | RegExp): boolean {
  return typeof wanted === 'string' ? text.includes(wanted) : wanted.test(text);
}
