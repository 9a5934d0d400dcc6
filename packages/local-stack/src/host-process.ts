import { type ChildProcess, spawn } from 'node:child_process';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import type { DirectoryLock } from './directory-lock.js';
import { LogFile } from './log-file.js';
import { identifyProcess, isRunning, type ProcessIdentity } from './process-identity.js';
import { exitedEarly, waitUntilReady } from './readiness.js';
import type { RunningServer, ServerExit } from './running-server.js';
import { hasErrorCode } from './system-error.js';

const STOP_DEADLINE_MS = 15_000;
const POLL_MS = 25;

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
  /** Default: this process's own. */
  env?: NodeJS.ProcessEnv | undefined;
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
    private readonly log: LogFile,
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
    const log = await LogFile.open(options.logFile);
    try {
      const host = spawn(process.execPath, [script, ...options.args], {
        cwd: options.directory,
        env: options.env,
        detached: true,
        stdio: ['pipe', options.announcesPid ? 'pipe' : log.fd, log.fd],
      });
      await new Promise((resolve, reject) => host.once('spawn', resolve).once('error', reject));
      const started = new HostProcess(host, options, log);
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

  /** @throws LocalStackError `exited_early` or `not_ready_in_time`; the server is gone then */
  waitUntilReady(answers: () => Promise<unknown>, deadlineMs: number): Promise<void> {
    const { name } = this.options;
    return waitUntilReady({ name, answers, exited: this.exited, kill: () => this.kill(), log: this.log, deadlineMs });
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
    if (line === undefined) throw await exitedEarly({ name: this.options.name, exited: this.exited, log: this.log });
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
