/** The services as separate processes, as in production. */
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { DataDirectory } from '../engine/data-directory.js';
import { type RunningServer, startServer } from '../engine/host-process.js';
import { ask } from '../engine/http-probe.js';
import { findFreePort, isPortFree, requireFreePort } from '../engine/ports.js';

const SERVICES = fileURLToPath(new URL('../../../../services', import.meta.url));
const READY_DEADLINE_MS = 60_000;

const EVERY_ADDRESS = '0.0.0.0';

/**
 * NODE_OPTIONS of each service, as in the Dockerfile, unless the environment sets them. Of what the ingest worker holds
 * 50 MB are in use; on a large machine Node would let 200 MB of garbage pile up next to them; with this limit it
 * collects earlier, at no measurable cost. A collector that receives as much as it may at once needs some 400 MB.
 * Its requests live for as long as a write to Redis takes: with more room for young objects fewer of them are copied, which
 * saves a tenth of its processor time.
 */
export const NODE_OPTIONS = {
  ingest: '--max-old-space-size=1024',
  query: '',
  collector: '--max-old-space-size=1024 --max-semi-space-size=32',
} as const;

export interface ServiceOptions {
  /** The name of its folder in `services`. */
  name: keyof typeof NODE_OPTIONS;
  env: NodeJS.ProcessEnv;
  /** The log goes to `<name>.log` in it. */
  directory: DataDirectory;
  /** What the service answers requests at; undefined where it has nothing but its admin port. */
  url?: string;
  /** Found free for this start. Another stack that starts meanwhile may get the port of `url`, and answer there; here it does not. */
  adminUrl: string;
}

/**
 * Starts a service through `lifeline.js`, which stops the service when this process ends or asks for it, and kills it if
 * it does not stop: a service that waits for a dead Redis must not be left running.
 *
 * @throws LocalStackError `exited_early` or `not_ready_in_time`
 */
export function startService({ name, env, directory, url, adminUrl }: ServiceOptions): Promise<RunningServer> {
  return startServer(directory, async () => ({
    name: `The ${name} service`,
    label: name,
    script: 'lifeline.js',
    args: [process.execPath, fileOf(name)],
    announcesPid: true,
    cwd: process.cwd(),
    env: { NODE_OPTIONS: NODE_OPTIONS[name], ...env },
    url: url ?? adminUrl,
    answers: async () => {
      await requireOk(new URL('/healthz', adminUrl));
      if (url !== undefined) await requireOk(new URL('/readyz', url));
    },
    readyDeadlineMs: READY_DEADLINE_MS,
  }));
}

/** Joined from its files, beside this one, if this one is (scripts/bundle.mjs). */
function fileOf(name: string): string {
  const joined = join(import.meta.dirname, `${name}.mjs`);
  return existsSync(joined) ? joined : join(SERVICES, name, 'dist', 'main.js');
}

async function requireOk(url: URL): Promise<void> {
  const { status } = await ask(url);
  if (status !== 200) throw new Error(`${url.href} answers ${status}`);
}

export interface PortChoice {
  /** What listens there, as in "the API". */
  readonly listener: string;
  /** Asks for a port. */
  readonly variable: string;
  readonly wanted: number | undefined;
  readonly usual: number;
}

/**
 * The port asked for, or else the usual one, or else any that is free.
 *
 * @throws LocalStackError `port_in_use` if the one asked for is
 */
export async function choosePort(
  { listener, variable, wanted, usual }: PortChoice,
  say: (line: string) => void,
): Promise<number> {
  if (wanted !== undefined) {
    await requireFreePort(wanted, variable);
    return wanted;
  }
  if ((await isPortFree(usual)) && (await isPortFree(usual, EVERY_ADDRESS))) return usual;
  const port = await findFreePort();
  say(`Port ${usual} is in use; ${listener} listens on ${port}.`);
  return port;
}
