import { randomInt } from 'node:crypto';
import { once } from 'node:events';
import { createServer } from 'node:net';
import { LocalStackError } from './errors.js';

export const LOOPBACK = '127.0.0.1';
const LAUNCH_ATTEMPTS = 5;
const PORT_ATTEMPTS = 50;

/** Ports are below the ephemeral range (from 32,768 on Linux), so that no outgoing connection takes a port before its server starts. */
const MIN_PORT = 10_000;
const MAX_PORT = 30_000;

/** Ports that `findFreePort` has returned already. They may not be in use yet. */
const returned = new Set<number>();

/** Returns a free port. The port is random, so that concurrent processes rarely choose the same port. */
export async function findFreePort(): Promise<number> {
  for (let attempt = 1; ; attempt += 1) {
    const port = randomInt(MIN_PORT, MAX_PORT);
    try {
      if (returned.has(port)) throw new Error(`port ${port} is already reserved`);
      returned.add(port);
      await listenBriefly(port, LOOPBACK);
      return port;
    } catch (error) {
      if (attempt === PORT_ATTEMPTS) throw error;
    }
  }
}

export async function isPortFree(port: number, host = LOOPBACK): Promise<boolean> {
  return listenBriefly(port, host).then(
    () => true,
    () => false,
  );
}

export async function requireFreePort(port: number, user: string): Promise<void> {
  if (await isPortFree(port)) return;
  throw new LocalStackError(
    `Port ${port} on ${LOOPBACK}, requested for ${user}, is in use by another process. Choose another port.`,
  );
}

/** Launches a server on a free port. If another process takes the port first, tries another port. */
export async function launchOnPort<T>(launch: (port: number) => Promise<T>): Promise<T> {
  for (let attempt = 1; ; attempt += 1) {
    const port = await findFreePort();
    try {
      return await launch(port);
    } catch (error) {
      if (attempt === LAUNCH_ATTEMPTS || (await isPortFree(port))) throw error;
    }
  }
}

async function listenBriefly(port: number, host: string): Promise<void> {
  const server = createServer().listen(port, host);
  await once(server, 'listening');
  server.close();
  await once(server, 'close');
}
