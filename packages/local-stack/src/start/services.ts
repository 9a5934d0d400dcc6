/** The services as separate processes, as in production, and the ports that they listen on. */
import { fileURLToPath } from 'node:url';
import type { DataDirectory } from '../data-directory.js';
import { findFreePort, isPortFree, LOOPBACK, requireFreePort } from '../ports.js';
import { probe, type RunningServer, startServer } from '../server-process.js';

const READY_TIMEOUT_MS = 60_000;
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
  alerts: '',
} as const;

export interface ServiceOptions {
  /** The name of its folder in `services`, and of its log. */
  readonly name: keyof typeof NODE_OPTIONS;
  readonly env: NodeJS.ProcessEnv;
  /** Undefined where it has nothing but its admin port. */
  readonly port?: number;
  /** Found free for this start. Another stack that starts meanwhile may get `port`, and answer there; here it does not. */
  readonly adminPort: number;
}

/**
 * Starts a service, which ends when this process does. On the loopback address: a developer's stack must not be reachable from the network.
 * @throws LocalStackError `exited_early` or `not_ready_in_time`
 */
export function startService(
  { name, env, port, adminPort }: ServiceOptions,
  directory: DataDirectory,
): Promise<RunningServer> {
  const listen = { LISTEN_HOST: LOOPBACK, ADMIN_PORT: String(adminPort), ...(port && { PORT: String(port) }) };
  return startServer(directory, async () => ({
    name: `The ${name} service`,
    label: name,
    args: [fileURLToPath(new URL(`../../../../services/${name}/dist/main.js`, import.meta.url))],
    ends: 'channel',
    env: { NODE_OPTIONS: NODE_OPTIONS[name], ...env, ...listen },
    url: urlAt(port ?? adminPort),
    answers: async () => {
      const urls = [`${urlAt(adminPort)}/healthz`, ...(port ? [`${urlAt(port)}/readyz`] : [])];
      for (const url of urls) {
        const { status } = await probe(url);
        if (status !== 200) throw new Error(`${url} answers ${status}`);
      }
    },
    readyTimeoutMs: READY_TIMEOUT_MS,
  }));
}

export function urlAt(port: number): string {
  return `http://${LOOPBACK}:${port}`;
}

/**
 * The port asked for, or else the usual one, or else any that is free.
 * @param listener what listens there, as in "the API"
 * @throws LocalStackError `port_in_use` if the one asked for is
 */
export async function choosePort(
  listener: string,
  wanted: number | undefined,
  usual: number,
  say: (line: string) => void,
): Promise<number> {
  if (wanted !== undefined) {
    await requireFreePort(wanted, listener);
    return wanted;
  }
  if ((await isPortFree(usual)) && (await isPortFree(usual, EVERY_ADDRESS))) return usual;
  const port = await findFreePort();
  say(`Port ${usual} is in use; ${listener} listens on ${port}.`);
  return port;
}
