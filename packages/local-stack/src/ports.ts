import { randomInt } from 'node:crypto';
import { once } from 'node:events';
import { createServer } from 'node:net';
import { LocalStackError } from './errors.js';

export const LOOPBACK = '127.0.0.1';
const ATTEMPTS = 5;
/** Of drawn ports, some of which other processes may have. */
const FREE_ATTEMPTS = 50;

/** Below the ports that a system gives to outgoing connections (Linux: from 32,768), which would take a port before its server listens. */
const MIN_PORT = 10_000;
const MAX_PORT = 30_000;

/** Those that this process has found, of which some may not be in use yet. */
const found = new Set<number>();

/** A port that was free a moment ago. It is drawn, so that another process that looks for one at the same time hardly gets the same. */
export async function findFreePort(): Promise<number> {
  for (let attempt = 1; ; attempt += 1) {
    const port = randomInt(MIN_PORT, MAX_PORT);
    try {
      if (found.has(port)) throw new Error(`port ${port} is promised already`);
      found.add(port);
      await listenBriefly(port, LOOPBACK);
      return port;
    } catch (error) {
      if (attempt === FREE_ATTEMPTS) throw error;
    }
  }
}

/** @param host default: the loopback address */
export async function isPortFree(port: number, host = LOOPBACK): Promise<boolean> {
  return listenBriefly(port, host).then(
    () => true,
    () => false,
  );
}

/** @throws LocalStackError when it is in use */
export async function requireFreePort(port: number, user: string): Promise<void> {
  if (await isPortFree(port)) return;
  throw new LocalStackError(`Port ${port} on ${LOOPBACK}, asked for by ${user}, is in use by another process.`);
}

/** Launches a server on a free port, and again if another process has taken that meanwhile. */
export async function launchOnPort<T>(launch: (port: number) => Promise<T>): Promise<T> {
  for (let attempt = 1; ; attempt += 1) {
    const port = await findFreePort();
    try {
      return await launch(port);
    } catch (error) {
      if (attempt === ATTEMPTS || (await isPortFree(port))) throw error;
    }
  }
}

async function listenBriefly(port: number, host: string): Promise<void> {
  const server = createServer().listen(port, host);
  await once(server, 'listening');
  server.close();
  await once(server, 'close');
}
