/** The services as separate processes, as in production, the ports that they listen on, and what starts a process again that has ended. */
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { backOffMs } from '@meterline/catalog/plain';
import type { DataDirectory } from '../data-directory.js';
import { errorMessage, LocalStackError } from '../errors.js';
import { findFreePort, isPortFree, LOOPBACK, requireFreePort } from '../ports.js';
import { describeExit, probe, type RunningServer, startServer } from '../server-process.js';

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
 * @throws LocalStackError when it ends early, or is not ready in time
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
    isReady: async () => {
      const urls = [`${urlAt(adminPort)}/healthz`, ...(port ? [`${urlAt(port)}/readyz`] : [])];
      for (const url of urls) {
        const { status } = await probe(url);
        if (status !== 200) throw new Error(`${url} answers ${status}`);
      }
    },
  });
}

export function urlAt(port: number): string {
  return `http://${LOOPBACK}:${port}`;
}

/**
 * The port asked for (0: any that is free), or else the usual one, or else any that is free.
 * @param listener what listens there, as in "the API"
 * @param other which the other one has, or is to have
 * @throws LocalStackError if the one asked for is in use
 */
export async function choosePort(
  listener: string,
  wanted: number | undefined,
  usual: number,
  say: (line: string) => void,
  other: number | undefined,
): Promise<number> {
  if (wanted === 0) return findFreePort();
  if (wanted !== undefined) {
    if (wanted === other) throw new LocalStackError(`The API and the collector cannot both listen on port ${wanted}.`);
    await requireFreePort(wanted, listener);
    return wanted;
  }
  if (usual !== other && (await isPortFree(usual)) && (await isPortFree(usual, EVERY_ADDRESS))) return usual;
  const port = await findFreePort();
  if (usual !== other) say(`Port ${usual} is in use; ${listener} listens on ${port}.`);
  return port;
}

const BACK_OFF = { firstMs: 500, longestMs: 30_000 };
/** A process that ran at least this long is restarted with the first delay. */
const STABLE_MS = 60_000;

/** In milliseconds, without jitter: nothing else comes back at that moment. */
const delayOf = (failures: number) => backOffMs(failures, BACK_OFF, 1);

/** Restarts a server or service that runs whenever it ends by itself, with growing delays. */
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
      this.say(`${name} is back.`);
    }
  }

  async #restart(nextDelay: number): Promise<boolean> {
    try {
      this.#current = await this.#current.restart();
      return true;
    } catch (error) {
      const { name } = this.#current;
      this.say(`${name} does not start; next attempt in ${nextDelay / 1000} s. ${errorMessage(error)}`);
      return false;
    }
  }
}
