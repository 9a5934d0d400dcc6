/** Runs a server or service as a child process with a log file: starts it, waits until it is ready, and stops it. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { type FileHandle, open, readFile, rename, stat } from 'node:fs/promises';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { type DataDirectory, signalTo } from './data-directory.js';
import { LocalStackError } from './errors.js';
import { requireFreePort } from './ports.js';

/** Long, because Redis may load a large append-only file on a busy machine. If the process ends, the wait ends immediately. */
const READY_TIMEOUT_MS = 120_000;
const STOP_TIMEOUT_MS = 15_000;
const POLL_MS = 25;
const PROBE_TIMEOUT_MS = 5_000;
const TAIL_LINES = 12;
/** A log above this size is renamed to `<name>.log.1` at the next start. */
const MAX_LOG_BYTES = 20 * 1024 * 1024;
/** Prefix of the lines in which our services report why they cannot start. */
const START_ERROR = /^meterline-[a-z]+: /;

export interface ServerExit {
  readonly code: number | null;
  readonly signal: NodeJS.Signals | null;
}

/** A running server. It ends together with the process that started it, even if that process is killed. */
export interface RunningServer {
  readonly name: string;
  readonly url: string;
  /** The process that owns the data and the ports. Tests kill it. */
  readonly pid: number;
  readonly logFile: string;
  /** Resolves when the process has ended and its data can be used again. Never rejects. */
  readonly exited: Promise<ServerExit>;
  /** Shuts the server down cleanly, or by force after a timeout. Safe to call again, or after the process has ended. */
  stop(): Promise<void>;
  kill(): Promise<void>;
  /** Starts an ended server again on the same ports. @throws the errors of `startServer` */
  restart(): Promise<RunningServer>;
}

export interface ServerOptions {
  readonly name: string;
  readonly label: string;
  readonly command?: string | undefined;
  readonly args: readonly string[];
  /** Set if the process ends when its standard input is closed. By default, it is sent SIGTERM. The same ends it after this process has died. */
  readonly stopsAt?: 'end of input';
  readonly cwd?: string | undefined;
  readonly env?: NodeJS.ProcessEnv | undefined;
  readonly url: string;
  /** Ports that must be free before each start. Otherwise another server could respond to `isReady`. */
  readonly ports?: readonly number[];
  /** Resolves if the server is ready. Called again after each rejection. */
  readonly isReady: () => Promise<unknown>;
  readonly readyTimeoutMs?: number;
}

/** Path of the compiled engine.ts. The path is valid even if this file runs from source. */
export const ENGINE_PROGRAM = fileURLToPath(new URL('../dist/engine.js', import.meta.url));

/**
 * Shell script of a parent watchdog. A background subshell waits for the end of standard input, which closes when the parent process dies.
 * The subshell then sends SIGTERM to the main shell, which `exec` has replaced with the command, and SIGKILL ten seconds later. The
 * subshell closes file descriptor 3, the lock of the data directory, so that only the command holds the lock.
 */
const WATCHDOG = `exec 4<&0 </dev/null
(
  exec 2>/dev/null 3<&-
  read -r _ <&4
  kill $$ || exit
  n=0
  while [ $n -lt 100 ]; do sleep 0.1 && kill -0 $$ || exit; n=$((n + 1)); done
  kill -9 $$
) &
exec 4<&-; exec "$@"`;

/** Returns a program and arguments that run the command under the watchdog. The command has the program's PID. Standard input must be a pipe. */
export function watched(command: string, args: readonly string[]): [string, string[]] {
  return ['/bin/sh', ['-c', WATCHDOG, 'sh', command, ...args]];
}

/** Sends a GET and closes the connection, because a shutdown of ClickHouse waits several seconds for idle connections. */
export async function probe(
  url: URL | string,
  headers: Readonly<Record<string, string>> = {},
): Promise<{ readonly status: number; readonly text: string }> {
  const signal = AbortSignal.timeout(PROBE_TIMEOUT_MS);
  const response = await fetch(url, { headers: { ...headers, connection: 'close' }, signal });
  return { status: response.status, text: await response.text() };
}

interface StartingServer extends RunningServer {
  /** Offset in the log file at which the output of this run begins. */
  readonly logStart: number;
}

/**
 * Starts a server and waits until it is ready.
 * @param directory must be open, also when `restart` is called
 * @throws LocalStackError if a port is in use, or if the server ends early or is not ready before the timeout. The server is then stopped.
 */
export async function startServer(directory: DataDirectory, options: ServerOptions): Promise<RunningServer> {
  const { name, label, url, stopsAt, command = process.execPath, ports = [] } = options;
  for (const port of ports) await requireFreePort(port, label);
  const log = await openLog(directory.file(`${label}.log`));
  // The child is detached, so that Ctrl-C reaches only the main process, which stops the servers in the right order.
  const [file, args] = stopsAt === 'end of input' ? [command, options.args] : watched(command, options.args);
  const child = spawn(file, args, {
    cwd: options.cwd,
    env: options.env,
    detached: true,
    stdio: ['pipe', log.handle.fd, log.handle.fd, directory.lock],
  });
  const exited = new Promise<ServerExit>((resolve) => child.once('exit', (code, signal) => resolve({ code, signal })));
  // The pipe can break when the child process dies. Ignore that error, because `exited` already reports the end of the process.
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
      if (stopsAt === 'end of input') child.stdin?.end();
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
    const message = await withTail(server, `${server.name} was not ready within ${readyTimeoutMs / 1000} s`);
    throw new LocalStackError(message, { cause: reason });
  }
}

export function describeExit({ code, signal }: ServerExit): string {
  return signal ?? `exit code ${code}`;
}

/** Returns the error for a process that ended before it was ready. The message has the start errors in its log, or else the log's end. */
async function exitedEarly(server: StartingServer): Promise<LocalStackError> {
  const exit = await server.exited;
  const lines = (await tailOf(server)).split('\n');
  const errors = lines.slice(lines.findLastIndex((line) => !START_ERROR.test(line)) + 1);
  const reasons = errors.map((line) => line.replace(START_ERROR, '')).join('; ');
  const problem = `${server.name} ended before it was ready (${describeExit(exit)})`;
  return new LocalStackError(reasons || (await withTail(server, problem)));
}

async function withTail(server: StartingServer, problem: string): Promise<string> {
  return `${problem}. The end of ${server.logFile}:\n${await tailOf(server)}`;
}

async function tailOf({ logFile, logStart }: StartingServer): Promise<string> {
  const text = (await readFile(logFile)).subarray(logStart).toString('utf8');
  return text.trimEnd().split('\n').slice(-TAIL_LINES).join('\n');
}
