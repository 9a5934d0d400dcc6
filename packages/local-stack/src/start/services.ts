/** Runs the services as separate processes, as in production. Chooses their ports and restarts processes that end. */
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { backOffMs } from '@meterline/catalog/plain';
import type { DataDirectory } from '../data-directory.js';
import { errorMessage, LocalStackError } from '../errors.js';
import { findFreePort, isPortFree, LOOPBACK, requireFreePort } from '../ports.js';
import { describeExit, probe, type RunningServer, startServer } from '../server-process.js';

const EVERY_ADDRESS = '0.0.0.0';

/**
 * Default NODE_OPTIONS of each service, as in the Dockerfile.
 *
 * The ingest worker uses 50 MB. On a large machine, Node would keep another 200 MB of garbage. With a limit, Node collects the garbage
 * earlier, without measurable cost.
 *
 * The collector needs about 400 MB at its maximum load. The objects of a request live as long as a Redis write. With a larger young
 * generation (semi-space), the garbage collector copies fewer of these objects, which saves 10 % of processor time.
 */
export const NODE_OPTIONS = {
  ingest: '--max-old-space-size=1024',
  query: '',
  collector: '--max-old-space-size=1024 --max-semi-space-size=32',
  alerts: '',
} as const;

export interface ServiceOptions {
  readonly name: keyof typeof NODE_OPTIONS;
  readonly env: NodeJS.ProcessEnv;
  /** The port for clients, or undefined for a service that has only an admin port. */
  readonly port?: number;
  readonly adminPort: number;
}

/**
 * Starts a service on the loopback address, because a developer's stack must not be reachable from the network. The service ends with this
 * process.
 * @throws LocalStackError if a port is in use, or if the service ends early or is not ready before the timeout
 */
export function startService(
  { name, env, port, adminPort }: ServiceOptions,
  directory: DataDirectory,
): Promise<RunningServer> {
  const listen = { LISTEN_HOST: LOOPBACK, ADMIN_PORT: String(adminPort), ...(port && { PORT: String(port) }) };
  return startServer(directory, {
    name: `The ${name} service`,
    label: name,
    args: [fileURLToPath(new URL(`../../../../services/${name}/dist/main.js`, import.meta.url))],
    env: { ...env, NODE_OPTIONS: env['NODE_OPTIONS'] || NODE_OPTIONS[name], ...listen },
    url: urlAt(port ?? adminPort),
    ports: [adminPort, ...(port ? [port] : [])],
    isReady: async () => {
      const urls = [`${urlAt(adminPort)}/healthz`, ...(port ? [`${urlAt(port)}/readyz`] : [])];
      for (const url of urls) {
        const { status } = await probe(url);
        if (status !== 200) throw new Error(`${url} responds with ${status}`);
      }
    },
  });
}

export function urlAt(port: number): string {
  return `http://${LOOPBACK}:${port}`;
}

/**
 * Returns the requested port (0 for any free port). Without a requested port, returns the default port, or any free port if the default
 * port is in use.
 * @param listener name in messages, such as "the API"
 * @param other port of the other listener, which must be different
 * @throws LocalStackError if the requested port is in use
 */
export async function choosePort(
  listener: string,
  requested: number | undefined,
  defaultPort: number,
  say: (line: string) => void,
  other: number | undefined,
): Promise<number> {
  if (requested === 0) return findFreePort();
  if (requested !== undefined) {
    if (requested === other)
      throw new LocalStackError(`The API and the collector cannot both listen on port ${other}.`);
    await requireFreePort(requested, listener);
    return requested;
  }
  const isDistinct = defaultPort !== other;
  if (isDistinct && (await isPortFree(defaultPort)) && (await isPortFree(defaultPort, EVERY_ADDRESS)))
    return defaultPort;
  const port = await findFreePort();
  if (isDistinct) say(`Port ${defaultPort} is in use; ${listener} listens on ${port}.`);
  return port;
}

const BACK_OFF = { firstMs: 500, longestMs: 30_000 };
const STABLE_MS = 60_000;

/** Returns the delay in milliseconds. Jitter is not needed, because only one process restarts. */
const delayOf = (failures: number) => backOffMs(failures, BACK_OFF, 1);

/** Restarts a server or service with exponential back-off whenever it ends unexpectedly. */
export class Supervised {
  readonly #stopping = new AbortController();
  readonly #watching: Promise<void>;
  #current: RunningServer;

  constructor(
    first: RunningServer,
    private readonly say: (line: string) => void,
  ) {
    this.#current = first;
    this.#watching = this.#watch(first);
  }

  async stop(): Promise<void> {
    this.#stopping.abort();
    await this.#current.stop();
    await this.#watching;
  }

  async #watch({ name }: RunningServer): Promise<void> {
    const { signal } = this.#stopping;
    let failures = 0;
    let startedAt = Date.now();
    for (;;) {
      const exit = await this.#current.exited;
      if (signal.aborted) return;
      if (Date.now() - startedAt >= STABLE_MS) failures = 0;
      this.say(`${name} ended unexpectedly (${describeExit(exit)}); restarting it in ${delayOf(failures) / 1000} s.`);

      for (let started = false; !started; ) {
        await sleep(delayOf(failures), undefined, { signal }).catch(() => undefined);
        if (signal.aborted) return;
        failures += 1;
        started = await this.#restart(delayOf(failures));
      }
      startedAt = Date.now();
      if (signal.aborted) return await this.#current.stop();
      this.say(`${name} is running again.`);
    }
  }

  async #restart(nextDelay: number): Promise<boolean> {
    try {
      this.#current = await this.#current.restart();
      return true;
    } catch (error) {
      const { name } = this.#current;
      this.say(`${name} failed to start; next attempt in ${nextDelay / 1000} s. ${errorMessage(error)}`);
      return false;
    }
  }
}
