import { type ChildProcess, spawn } from 'node:child_process';
import { open, readFile } from 'node:fs/promises';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import type { DirectoryLock } from './directory-lock.js';
import { LocalStackError, type LocalStackErrorCode } from './errors.js';
import { identifyProcess, isRunning, type ProcessIdentity } from './process-identity.js';
import type { RunningServer, ServerExit } from './running-server.js';
import { hasErrorCode } from './system-error.js';

const STOP_DEADLINE_MS = 15_000;
const POLL_MS = 25;
const LOG_TAIL_LINES = 12;

export interface HostOptions {
  /** What a message calls the server. */
  name: string;
  /** A file in this package's `hosts` directory. */
  script: string;
  args: string[];
  /** Whether the server is a child of the host, whose pid the host prints as its first line. */
  announcesPid: boolean;
  /** The server's working directory. */
  directory: string;
  logFile: string;
  lock: DirectoryLock;
}

/**
 * A server in a process that ends when its standard input does, which happens at the latest when this process dies.
 *
 * The host is detached, so that Ctrl-C in a terminal reaches only the process that owns it, and that one decides the
 * order in which things stop. The lock is released when the server is gone, and not before.
 */
export class HostProcess {
  readonly exited: Promise<ServerExit>;
  private server: ProcessIdentity | undefined;

  private constructor(
    private readonly host: ChildProcess,
    private readonly options: HostOptions,
    private readonly logStart: number,
  ) {
    this.exited = new Promise<ServerExit>((resolve) => {
      host.once('exit', (code, signal) => resolve({ code, signal }));
    }).then(async (exit) => {
      await this.endServer();
      await options.lock.release();
      return exit;
    });
    // Nothing is ever written to it, yet the pipe can break when the host dies; `exited` tells of that.
    host.stdin?.once('error', () => undefined);
  }

  static async start(options: HostOptions): Promise<HostProcess> {
    const script = fileURLToPath(new URL(`../hosts/${options.script}`, import.meta.url));
    const log = await open(options.logFile, 'a', 0o600);
    try {
      const { size } = await log.stat();
      const host = spawn(process.execPath, [script, ...options.args], {
        cwd: options.directory,
        detached: true,
        stdio: ['pipe', options.announcesPid ? 'pipe' : log.fd, log.fd],
      });
      await new Promise((resolve, reject) => host.once('spawn', resolve).once('error', reject));
      const started = new HostProcess(host, options, size);
      await started.learnServerPid();
      return started;
    } finally {
      await log.close();
    }
  }

  get pid(): number {
    if (!this.server) throw new Error(`${this.options.name} has no pid before it has started`);
    return this.server.pid;
  }

  /**
   * Waits until `answers` resolves. If that does not happen, the server is gone when this rejects.
   *
   * @throws LocalStackError `exited_early` or `not_ready_in_time`, with the tail of the log
   */
  async waitUntilReady(answers: () => Promise<unknown>, deadlineMs: number): Promise<void> {
    const deadline = Date.now() + deadlineMs;
    const gone = this.exited.then(() => 'gone' as const);
    for (;;) {
      const attempt = answers().then(
        () => 'ready' as const,
        (error: unknown) => error,
      );
      const outcome = await Promise.race([gone, attempt]);
      if (outcome === 'ready') return;
      if (outcome === 'gone') throw await this.exitedEarly();
      if (Date.now() > deadline) {
        await this.kill();
        throw await this.failure('not_ready_in_time', `did not answer within ${deadlineMs / 1000} s`, outcome);
      }
      await sleep(POLL_MS);
    }
  }

  async stop(): Promise<void> {
    this.host.stdin?.end();
    const force = setTimeout(() => void this.kill(), STOP_DEADLINE_MS);
    await this.exited;
    clearTimeout(force);
  }

  async kill(): Promise<void> {
    await this.endServer();
    // A host that ran the server as a child ends by itself now, and a host that was the server has ended.
    await this.exited;
  }

  /** The part of the public face that every server has. */
  describe(url: string): RunningServer {
    return {
      url,
      pid: this.pid,
      logFile: this.options.logFile,
      exited: this.exited,
      stop: () => this.stop(),
      kill: () => this.kill(),
    };
  }

  private async learnServerPid(): Promise<void> {
    const hostPid = this.host.pid;
    if (hostPid === undefined) throw new Error('A spawned process has no pid');
    // Recorded at once: from here on the directory is in use, even if this process dies now.
    await this.options.lock.addServer(hostPid);
    if (!this.options.announcesPid) {
      this.server = await identifyProcess(hostPid);
      return;
    }
    const line = await Promise.race([firstLine(this.host), this.exited.then(() => undefined)]);
    if (line === undefined) throw await this.exitedEarly();
    this.server = await identifyProcess(Number(line));
    await this.options.lock.addServer(this.server.pid);
  }

  /** Kills the server, also one whose host was killed and could not end it. */
  private async endServer(): Promise<void> {
    while (this.server && (await isRunning(this.server))) {
      signalIfPresent(this.server.pid);
      await sleep(POLL_MS);
    }
  }

  private async exitedEarly(): Promise<LocalStackError> {
    const { code, signal } = await this.exited;
    return this.failure('exited_early', `ended before it was ready (${signal ?? `exit code ${code}`})`);
  }

  private async failure(code: LocalStackErrorCode, what: string, cause?: unknown): Promise<LocalStackError> {
    const { name, logFile } = this.options;
    const log = (await readFile(logFile)).subarray(this.logStart).toString('utf8');
    const tail = log.trimEnd().split('\n').slice(-LOG_TAIL_LINES).join('\n');
    return new LocalStackError(code, `${name} ${what}. The end of ${logFile}:\n${tail}`, { cause });
  }
}

function signalIfPresent(pid: number): void {
  try {
    process.kill(pid, 'SIGKILL');
  } catch (error) {
    if (!hasErrorCode(error, 'ESRCH')) throw error;
  }
}

function firstLine(host: ChildProcess): Promise<string> {
  return new Promise((resolve) => {
    let text = '';
    host.stdout?.on('data', (chunk: Buffer) => {
      text += chunk.toString('utf8');
      const end = text.indexOf('\n');
      if (end >= 0) resolve(text.slice(0, end));
    });
  });
}
