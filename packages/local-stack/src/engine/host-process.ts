import { type ChildProcess, spawn } from 'node:child_process';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { hasErrorCode } from '../errors.js';
import { DataDirectory, identifyProcess, isRunning, type ProcessIdentity } from './data-directory.js';
import { keepSmall, rotate } from './log-rotation.js';
import { requireListening } from './ports.js';
import { exitedEarly, LogFile, type ServerExit, waitUntilReady } from './readiness.js';

const STOP_DEADLINE_MS = 15_000;
const POLL_MS = 25;

/** A server that is ready. It ends when the process that started it ends, even if that process is killed. */
export interface RunningServer {
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
}

export interface ServerOptions {
  /** What a message calls the server. */
  name: string;
  /** Its log is `<dataDir>/<label>.log`, and an older half `<label>.log.1` once that is long. */
  label: string;
  /** A file in this package's `hosts` directory. */
  script: string;
  args: string[];
  /** Whether the server is a child of the host, whose pid the host prints as its first line. */
  announcesPid: boolean;
  /** The server's working directory. */
  cwd: string;
  /** Default: this process's own. */
  env?: NodeJS.ProcessEnv | undefined;
  url: string;
  /** Resolves once the server is ready. Asked when something listens on the port of `url`. */
  answers: () => Promise<unknown>;
  readyDeadlineMs: number;
}

/**
 * Starts a server and waits until it answers.
 *
 * @param dataDir a path: its lock is taken, and given back when the server is gone. An open directory: the server
 * uses it for its owner
 * @throws LocalStackError `directory_in_use`, `exited_early` or `not_ready_in_time`; the server is gone then
 */
export async function startServer(
  dataDir: string | DataDirectory,
  describe: (directory: DataDirectory) => Promise<ServerOptions>,
): Promise<RunningServer> {
  const directory = typeof dataDir === 'string' ? await DataDirectory.open(dataDir) : dataDir;
  const release = async () => {
    if (directory !== dataDir) await directory.close();
  };
  try {
    const options = await describe(directory);
    const host = await HostProcess.start(options, directory, release);
    await host.waitUntilReady();
    return {
      url: options.url,
      pid: host.pid,
      logFile: host.log.path,
      exited: host.exited,
      stop: () => host.stop(),
      kill: () => host.kill(),
    };
  } catch (error) {
    await release();
    throw error;
  }
}

/**
 * A server in a process that ends when its standard input does, which happens at the latest when this process dies.
 *
 * The host is detached, so that Ctrl-C in a terminal reaches only the process that owns it, and that one decides the
 * order in which things stop.
 */
class HostProcess {
  readonly exited: Promise<ServerExit>;
  private server: ProcessIdentity | undefined;

  private constructor(
    private readonly host: ChildProcess,
    private readonly options: ServerOptions,
    readonly log: LogFile,
    gone: () => Promise<unknown>,
  ) {
    const endRotation = keepSmall(log.path);
    this.exited = new Promise<ServerExit>((resolve) => {
      host.once('exit', (code, signal) => resolve({ code, signal }));
    }).then(async (exit) => {
      endRotation();
      await this.forceEnd();
      await gone();
      return exit;
    });
    // Nothing is ever written to it, yet the pipe can break when the host dies; `exited` reports that.
    host.stdin?.once('error', () => undefined);
  }

  static async start(
    options: ServerOptions,
    directory: DataDirectory,
    gone: () => Promise<unknown>,
  ): Promise<HostProcess> {
    const script = fileURLToPath(new URL(`../../hosts/${options.script}`, import.meta.url));
    const logPath = directory.file(`${options.label}.log`);
    await rotate(logPath);
    const log = await LogFile.open(logPath);
    try {
      const host = spawn(process.execPath, [script, ...options.args], {
        cwd: options.cwd,
        env: options.env,
        detached: true,
        stdio: ['pipe', options.announcesPid ? 'pipe' : log.fd, log.fd],
      });
      await new Promise((resolve, reject) => host.once('spawn', resolve).once('error', reject));
      const started = new HostProcess(host, options, log, gone);
      await started.learnServerPid(directory);
      return started;
    } finally {
      await log.close();
    }
  }

  get pid(): number {
    if (!this.server) throw new Error(`${this.options.name} has no pid before it has started`);
    return this.server.pid;
  }

  waitUntilReady(): Promise<void> {
    const { name, url, readyDeadlineMs: deadlineMs } = this.options;
    const answers = () => requireListening(url).then(this.options.answers);
    return waitUntilReady({ name, answers, exited: this.exited, kill: () => this.kill(), log: this.log, deadlineMs });
  }

  async stop(): Promise<void> {
    this.host.stdin?.end();
    const force = setTimeout(() => void this.kill(), STOP_DEADLINE_MS);
    await this.exited;
    clearTimeout(force);
  }

  async kill(): Promise<void> {
    await this.forceEnd();
    // A host that ran the server as a child ends by itself now, and a host that was the server has ended.
    await this.exited;
  }

  private async learnServerPid(directory: DataDirectory): Promise<void> {
    const hostPid = this.host.pid;
    if (hostPid === undefined) throw new Error('A spawned process has no pid');
    // Recorded at once: from here on the directory is in use, even if this process dies now.
    await directory.addProcess(hostPid);
    if (!this.options.announcesPid) {
      this.server = await identifyProcess(hostPid);
      return;
    }
    const line = await Promise.race([firstLine(this.host), this.exited.then(() => undefined)]);
    if (line === undefined) throw await exitedEarly({ name: this.options.name, exited: this.exited, log: this.log });
    this.server = await identifyProcess(Number(line));
    await directory.addProcess(this.server.pid);
  }

  /** Kills the server, also if its host was killed and could not end it. */
  private async forceEnd(): Promise<void> {
    while (this.server && (await isRunning(this.server))) {
      try {
        process.kill(this.server.pid, 'SIGKILL');
      } catch (error) {
        if (!hasErrorCode(error, 'ESRCH')) throw error;
      }
      await sleep(POLL_MS);
    }
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
