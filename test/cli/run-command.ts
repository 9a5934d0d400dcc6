import { spawn } from 'node:child_process';
import { PassThrough, type Readable, type Writable } from 'node:stream';
import { fileURLToPath } from 'node:url';
import { createContext } from '../../packages/cli/src/context.js';
import { runProgram } from '../../packages/cli/src/program.js';
import type { TestApi } from '../harness/api.js';
import { asRedisUser } from '../harness/services.js';

const ROOT = fileURLToPath(new URL('../..', import.meta.url));
export const BIN = fileURLToPath(new URL('../../packages/cli/bin/meterline.js', import.meta.url));

export interface MeterlineRun {
  readonly code: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

export interface MeterlineOptions {
  /** On top of PATH, HOME and TZ only, so that a developer's own variables change nothing. */
  readonly env?: Readonly<Record<string, string>>;
  /** What is typed: at once, or in response to what appears on stderr. */
  readonly stdin?: string | { readonly at: string; readonly response: () => Promise<string> };
  /** The time that the command reads from its clock (default: the real time). Only for `runCommand`. */
  readonly now?: number;
  /** Whether stderr is a terminal. */
  readonly isTerminal?: boolean;
  /** Ends the command as soon as this appears on stderr. */
  readonly interruptAt?: string | RegExp;
  /** Ends the command when this resolves. */
  readonly interruptOn?: Promise<unknown>;
}

/** Returns the variables with which a command uses the API as a caller with a new key. */
export async function callerOf(
  api: Pick<TestApi, 'url' | 'key'>,
  ...key: Parameters<TestApi['key']>
): Promise<Record<string, string>> {
  return { METERLINE_API_URL: api.url, METERLINE_API_KEY: await api.key(...key) };
}

/**
 * Runs the command line inside this process, which takes a fraction of a process of its own: for tests that are about
 * what a command does, and not about how it starts and ends. Ctrl-C is the abort of its signal.
 */
export async function runCommand(args: readonly string[], options: MeterlineOptions = {}): Promise<MeterlineRun> {
  const [stdin, stdout] = [new PassThrough(), new PassThrough()];
  const stderr = Object.assign(new PassThrough(), { isTTY: options.isTerminal });
  const interruption = new AbortController();
  const printed = follow({ stdin, stdout, stderr, interrupt: () => interruption.abort() }, options);
  const context = createContext({ stdin, stdout, stderr }, variables(options));
  // The process' own signals are the test run's.
  const { now } = options;
  const clock = now === undefined ? context.now : () => new Date(now);
  const own = { ...context, now: clock, interruption: () => interruption.signal };
  const code = await runProgram(args, { stdout, stderr }, async () => own);
  await Promise.all([stdout, stderr].map((stream) => new Promise<void>((resolve) => stream.end(resolve))));
  return { code, ...printed };
}

/** Runs the real command as a process of its own. */
export async function runMeterline(args: readonly string[], options: MeterlineOptions = {}): Promise<MeterlineRun> {
  const { PATH, HOME, TZ } = process.env;
  const env = { PATH, HOME, TZ, ...variables(options) };
  const child = spawn(process.execPath, [BIN, ...args], { cwd: ROOT, env });
  const { stdin, stdout, stderr } = child;
  const printed = follow({ stdin, stdout, stderr, interrupt: () => child.kill('SIGINT') }, options);
  return new Promise((resolve, reject) => {
    child.stdin.once('error', reject);
    child.once('error', reject);
    child.once('close', (code) => resolve({ code, ...printed }));
  });
}

function variables({ env = {} }: MeterlineOptions) {
  return { METERLINE_DATA_DIR: 'none', XDG_CONFIG_HOME: 'none', ...asRedisUser(env, 'operator') };
}

interface Followed {
  readonly stdin: Writable;
  readonly stdout: Readable;
  readonly stderr: Readable;
  readonly interrupt: () => void;
}

/** Types and interrupts as the options say. @returns what is printed, as it comes */
function follow({ stdin, stdout, stderr, interrupt }: Followed, options: MeterlineOptions) {
  const { stdin: typed = '', interruptAt, interruptOn } = options;
  const printed = { stdout: '', stderr: '' };
  stdout.setEncoding('utf8').on('data', (chunk: string) => {
    printed.stdout += chunk;
  });
  stderr.setEncoding('utf8').on('data', (chunk: string) => {
    const before = printed.stderr;
    printed.stderr += chunk;
    const appears = (text: string | RegExp) => holds(printed.stderr, text) && !holds(before, text);
    // Once: a second one would end the process at once.
    if (interruptAt !== undefined && appears(interruptAt)) interrupt();
    if (typeof typed === 'string' || !appears(typed.at)) return;
    typed.response().then(
      (text) => stdin.end(text),
      (error: Error) => stdin.destroy(error),
    );
  });
  void interruptOn?.then(interrupt);
  if (typeof typed === 'string') stdin.end(typed);
  return printed;
}

function holds(text: string, wanted: string | RegExp): boolean {
  return typeof wanted === 'string' ? text.includes(wanted) : wanted.test(text);
}
