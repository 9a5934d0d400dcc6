import { spawn } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { LogFile } from '../log-file.js';
import { waitUntilReady } from '../readiness.js';
import type { ServerExit } from '../running-server.js';
import type { Running } from './supervised.js';

const READY_DEADLINE_MS = 60_000;
const STOP_DEADLINE_MS = 15_000;
const PROBE_TIMEOUT_MS = 5_000;

export interface ServiceOptions {
  /** The name of its folder in `services`. */
  name: 'ingest' | 'query';
  env: NodeJS.ProcessEnv;
  logFile: string;
  /** Answers 200 once the service is ready. */
  readyUrl: string;
}

/**
 * Starts a service as a process of its own, as in production. It holds an IPC channel to this process and stops in
 * good order when that breaks, so it does not outlive this process even if that is killed. It is detached for the same
 * reason as a server: Ctrl-C must not reach it before this process has decided what stops first.
 *
 * @throws LocalStackError `exited_early` or `not_ready_in_time`
 */
export async function startService({ name, env, logFile, readyUrl }: ServiceOptions): Promise<Running> {
  const main = fileURLToPath(new URL(`../../../../services/${name}/dist/main.js`, import.meta.url));
  const log = await LogFile.open(logFile);
  const service = spawn(process.execPath, [main], {
    env,
    detached: true,
    stdio: ['ignore', log.fd, log.fd, 'ipc'],
  });
  const exited = new Promise<ServerExit>((resolve, reject) => {
    service.once('exit', (code, signal) => resolve({ code, signal })).once('error', reject);
  });
  await log.close();

  const end = async (signal: NodeJS.Signals) => {
    service.kill(signal);
    await exited;
  };
  const kill = () => end('SIGKILL');
  const stop = async () => {
    const force = setTimeout(kill, STOP_DEADLINE_MS);
    // An open channel that a service listens to would keep it alive after all else is closed.
    if (service.connected) service.disconnect();
    await end('SIGTERM');
    clearTimeout(force);
  };
  await waitUntilReady({
    name: `The ${name} service`,
    answers: () => requireOk(readyUrl),
    exited,
    kill,
    log,
    deadlineMs: READY_DEADLINE_MS,
  });
  return { exited, stop, kill };
}

async function requireOk(url: string): Promise<void> {
  const response = await fetch(url, {
    headers: { connection: 'close' },
    signal: AbortSignal.timeout(PROBE_TIMEOUT_MS),
  });
  await response.arrayBuffer();
  if (!response.ok) throw new Error(`${url} answers ${response.status}`);
}
