import { connect, createServer } from 'node:net';
import { LocalStackError } from '../errors.js';

export const LOOPBACK = '127.0.0.1';
const ATTEMPTS = 5;

/** A port that was free a moment ago; another process may take it before it is used, so callers retry. */
export function findFreePort(): Promise<number> {
  return listenBriefly(0, LOOPBACK);
}

/** @param host default: the loopback address */
export async function isPortFree(port: number, host = LOOPBACK): Promise<boolean> {
  return listenBriefly(port, host).then(
    () => true,
    () => false,
  );
}

/** Rejects while nothing listens on the URL's port; to find that out again and again takes little processor time. */
export function requireListening(url: string): Promise<void> {
  const { hostname, port } = new URL(url);
  return new Promise((resolve, reject) => {
    const socket = connect(Number(port), hostname, () => {
      socket.destroy();
      resolve();
    });
    socket.once('error', reject);
  });
}

/** @throws LocalStackError `port_in_use` */
export async function requireFreePort(port: number, user: string): Promise<void> {
  if (await isPortFree(port)) return;
  throw new LocalStackError(
    'port_in_use',
    `Port ${port} on ${LOOPBACK}, asked for by ${user}, is in use by another process.`,
  );
}

/**
 * Launches a server, and retries with other ports if another process has taken a free one in the meantime.
 *
 * @param launch calls `choose` for each of its ports, with the requested port if there is one
 */
export async function launchOnFreePorts<T>(
  launch: (choose: (wanted: number | undefined) => Promise<number>) => Promise<T>,
): Promise<T> {
  for (let attempt = 1; ; attempt++) {
    const found: number[] = [];
    try {
      return await launch(async (wanted) => {
        if (wanted !== undefined) return wanted;
        const port = await findFreePort();
        found.push(port);
        return port;
      });
    } catch (error) {
      const exited = error instanceof LocalStackError && error.code === 'exited_early';
      if (!exited || attempt === ATTEMPTS) throw error;
      const free = await Promise.all(found.map((port) => isPortFree(port)));
      if (free.every(Boolean)) throw error;
    }
  }
}

function listenBriefly(port: number, host: string): Promise<number> {
  return new Promise((resolve, reject) => {
    const server = createServer();
    server.once('error', reject);
    server.listen(port, host, () => {
      const address = server.address();
      server.close(() => {
        if (address === null || typeof address === 'string') reject(new Error('A TCP server has no TCP address'));
        else resolve(address.port);
      });
    });
  });
}
