import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { lockDirectory } from '../directory-lock.js';
import { HostProcess } from '../host-process.js';
import type { RunningServer } from '../running-server.js';

const SERVICES = fileURLToPath(new URL('../../../../services', import.meta.url));
const READY_DEADLINE_MS = 60_000;
const PROBE_TIMEOUT_MS = 5_000;

/**
 * NODE_OPTIONS of each service, as in the Dockerfile, where nothing else is said. Of what the ingest worker holds 50 MB
 * are in use; on a large machine Node would let 200 MB of garbage pile up beside them, and with this bound it collects
 * earlier, at no cost that shows.
 */
export const NODE_OPTIONS = { ingest: '--max-old-space-size=1024', query: '' } as const;

export interface ServiceOptions {
  /** The name of its folder in `services`. */
  name: keyof typeof NODE_OPTIONS;
  env: NodeJS.ProcessEnv;
  /** The log goes to `<dataDir>/<name>.log`. */
  dataDir: string;
  /** What the service answers requests at. */
  url: string;
  /** Answers 200 once the service is ready. */
  readyPath: string;
}

/**
 * Starts a service as a process of its own, as in production. Its lifeline asks it to stop when this process is gone
 * or says so, and ends it if it does not heed that: a service that waits for a dead Redis must not become an orphan.
 *
 * @throws LocalStackError `exited_early` or `not_ready_in_time`
 */
export async function startService({ name, env, dataDir, url, readyPath }: ServiceOptions): Promise<RunningServer> {
  const lock = await lockDirectory(join(dataDir, `${name}.lock`), dataDir);
  try {
    const host = await HostProcess.start({
      name: `The ${name} service`,
      script: 'lifeline.js',
      args: [process.execPath, join(SERVICES, name, 'dist', 'main.js')],
      announcesPid: true,
      directory: process.cwd(),
      logFile: join(dataDir, `${name}.log`),
      lock,
      env: { NODE_OPTIONS: NODE_OPTIONS[name], ...env },
    });
    await host.waitUntilReady(() => requireOk(new URL(readyPath, url)), READY_DEADLINE_MS);
    return host.describe(url);
  } catch (error) {
    await lock.release();
    throw error;
  }
}

async function requireOk(url: URL): Promise<void> {
  const response = await fetch(url, {
    headers: { connection: 'close' },
    signal: AbortSignal.timeout(PROBE_TIMEOUT_MS),
  });
  await response.arrayBuffer();
  if (!response.ok) throw new Error(`${url.href} answers ${response.status}`);
}
