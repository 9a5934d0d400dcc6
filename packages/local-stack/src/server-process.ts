/** A server or service as a child process, with its log file: starts it, waits until it answers, stops it. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { type FileHandle, open, readFile, rename, stat } from 'node:fs/promises';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { type DataDirectory, signalTo } from './data-directory.js';
import { LocalStackError } from './errors.js';

/** Long, because Redis reads a large append-only file first, and a busy machine starts nothing fast. One that ends is noticed at once. */
const READY_TIMEOUT_MS = 120_000;
const STOP_TIMEOUT_MS = 15_000;
const POLL_MS = 25;
const PROBE_TIMEOUT_MS = 5_000;
const TAIL_LINES = 12;
/** A log that is longer at a start becomes `<name>.log.1`. */
const MAX_LOG_BYTES = 20 * 1024 * 1024;
/** How our services begin a line that says why they do not start. */
const OWN_WORDS = /^meterline-[a-z]+: /;

/** How a process ended. */
export interface ServerExit {
  readonly code: number | null;
  readonly signal: NodeJS.Signals | null;
}

/** A server that is ready. It ends when the process that started it ends, even if that process is killed. */
export interface RunningServer {
  /** What a message calls it. */
  readonly name: string;
  readonly url: string;
  /** The process that holds the data and the ports, so that a fault test kills the right one. */
  readonly pid: number;
  readonly logFile: string;
  /** Resolves, never rejects, once the process is gone and its data may be used again. */
  readonly exited: Promise<ServerExit>;
  /** Shuts down cleanly, by force after a deadline. Safe to call again, or after the server has died. */
  stop(): Promise<void>;
  /** Sends SIGKILL and waits for the end. */
  kill(): Promise<void>;
  /** Starts it once more on the same ports, after its end. @throws LocalStackError as at its start */
  restart(): Promise<RunningServer>;
}

export interface ServerOptions {
  /** What a message calls the server. */
  readonly name: string;
  /** Its log is `<directory>/<label>.log`. */
  readonly label: string;
  /** Default: Node. */
  readonly command?: string | undefined;
  readonly args: readonly string[];
  /** How it learns that it has to end, and that its parent is gone. Default: SIGTERM; with `input`, the end of its standard input. */
  readonly ends?: 'input';
  readonly cwd?: string | undefined;
  /** Default: this process's own. */
  readonly env?: NodeJS.ProcessEnv | undefined;
  readonly url: string;
  /** Resolves once the server is ready; called again while it rejects. */
  readonly isReady: () => Promise<unknown>;
  readonly readyTimeoutMs?: number;
}

/** A program of this package, compiled; also when this file runs from its source. */
export const ENGINE_PROGRAM = fileURLToPath(new URL('../dist/engine.js', import.meta.url));

/**
 * A parent watchdog in the shell: it waits for the end of standard input, which also the death of the parent is, and sends SIGTERM to the
 * process, which the command then becomes, and SIGKILL if it is still there ten seconds later. Of file 3, the lock of a data directory, the command alone keeps a copy.
 */
const WATCHED = `exec 4<&0 </dev/null
(
  exec 2>/dev/null 3<&-
  read -r _ <&4
  kill $$ || exit
  n=0
  while [ $n -lt 100 ]; do sleep 0.1 && kill -0 $$ || exit; n=$((n + 1)); done
  kill -9 $$
) &
exec 4<&-; exec "$@"`;

/** What to spawn, with a pipe as standard input, for a command that gets SIGTERM when this process is gone. Its pid is the child's. */
export function watched(command: string, args: readonly string[]): [string, string[]] {
  return ['/bin/sh', ['-c', WATCHED, 'sh', command, ...args]];
}

/** The response to a GET on a new connection, which is closed: ClickHouse would wait for seconds at its end while one is idle. */
export async function probe(
  url: URL | string,
  headers: Readonly<Record<string, string>> = {},
): Promise<{ readonly status: number; readonly text: string }> {
  const signal = AbortSignal.timeout(PROBE_TIMEOUT_MS);
  const response = await fetch(url, { headers: { ...headers, connection: 'close' }, signal });
  return { status: response.status, text: await response.text() };
}

interface StartingServer extends RunningServer {
  /** Where the log of this run begins. */
  readonly logStart: number;
}

/**
 * Starts a server and waits until it answers.
 *
 * @param directory stays open
 * @throws LocalStackError when the server ends early or is not ready in time; it is gone then
 */
export async function startServer(directory: DataDirectory, options: ServerOptions): Promise<RunningServer> {
  const { name, url, ends, command = process.execPath } = options;
  const log = await openLog(directory.file(`${options.label}.log`));
  // Detached, so that Ctrl-C in a terminal reaches only the process that owns it, and that one decides the order in which things stop.
  const [file, args] = ends === 'input' ? [command, options.args] : watched(command, options.args);
  const child = spawn(file, args, {
    cwd: options.cwd,
    env: options.env,
    detached: true,
    stdio: ['pipe', log.handle.fd, log.handle.fd, directory.lock],
  });
  const exited = new Promise<ServerExit>((resolve) => child.once('exit', (code, signal) => resolve({ code, signal })));
  // Nothing is ever written to it, yet the pipe can break when the child process dies; `exited` reports that.
  child.stdin?.once('error', () => undefined);
  await once(child, 'spawn').finally(() => log.handle.close());
  const server: StartingServer = {
    name,
    url,
    pid: child.pid ?? 0,
    logFile: log.path,
    logStart: log.start,
    exited,
    restart: () => startServer(directory, options),
    kill: async () => {
      signalTo(server.pid, 'SIGKILL');
      await server.exited;
    },
    stop: async () => {
      if (ends === 'input') child.stdin?.end();
      else child.kill('SIGTERM');
      const force = setTimeout(() => void server.kill(), STOP_TIMEOUT_MS);
      await server.exited;
      clearTimeout(force);
    },
  };
  await untilReady(server, options);
  return server;
}

async function openLog(path: string): Promise<{ handle: FileHandle; path: string; start: number }> {
  const { size } = await stat(path).catch(() => ({ size: 0 }));
  const isLong = size > MAX_LOG_BYTES;
  if (isLong) await rename(path, `${path}.1`);
  return { handle: await open(path, 'a', 0o600), path, start: isLong ? 0 : size };
}

async function untilReady(
  server: StartingServer,
  { isReady, readyTimeoutMs = READY_TIMEOUT_MS }: ServerOptions,
): Promise<void> {
  let isGone = false;
  const gone = server.exited.then(() => {
    isGone = true;
  });
  for (const end = performance.now() + readyTimeoutMs; ; await sleep(POLL_MS)) {
    const reason = await Promise.race([
      gone,
      isReady().then(
        () => undefined,
        (error: unknown) => error ?? 'no reason',
      ),
    ]);
    if (isGone) throw await exitedEarly(server);
    if (reason === undefined) return;
    if (performance.now() < end) continue;
    await server.kill();
    const message = await withTail(server, `${server.name} did not answer within ${readyTimeoutMs / 1000} s`);
    throw new LocalStackError(message, { cause: reason });
  }
}

export function describeExit({ code, signal }: ServerExit): string {
  return signal ?? `exit code ${code}`;
}

/** Why a process that has exited never became ready: in its own words if it ended with some. */
async function exitedEarly(server: StartingServer): Promise<LocalStackError> {
  const exit = await server.exited;
  const lines = (await tailOf(server)).split('\n');
  const reasons = lines.slice(lines.findLastIndex((line) => !OWN_WORDS.test(line)) + 1);
  const said = reasons.map((line) => line.replace(OWN_WORDS, '')).join('; ');
  const what = `${server.name} ended before it was ready (${describeExit(exit)})`;
  return new LocalStackError(said || (await withTail(server, what)));
}

async function withTail(server: StartingServer, what: string): Promise<string> {
  return `${what}. The end of ${server.logFile}:\n${await tailOf(server)}`;
}

async function tailOf({ logFile, logStart }: StartingServer): Promise<string> {
  const text = (await readFile(logFile)).subarray(logStart).toString('utf8');
  return text.trimEnd().split('\n').slice(-TAIL_LINES).join('\n');
}
