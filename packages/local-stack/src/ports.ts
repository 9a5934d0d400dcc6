import { createServer } from 'node:net';
import { LocalStackError } from './errors.js';

export const LOOPBACK = '127.0.0.1';
const ATTEMPTS = 5;

/** A port that was free a moment ago; another process may take it before it is used. */
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

/** @throws LocalStackError when it is in use */
export async function requireFreePort(port: number, user: string): Promise<void> {
  if (await isPortFree(port)) return;
  throw new LocalStackError(`Port ${port} on ${LOOPBACK}, asked for by ${user}, is in use by another process.`);
}

/**
 * Launches a server on the port asked for, or else on a free one, and again if another process has taken that meanwhile.
 * @throws LocalStackError if the one asked for is in use
 */
export async function launchOnPort<T>(
  wanted: number | undefined,
  user: string,
  launch: (port: number) => Promise<T>,
): Promise<T> {
  if (wanted !== undefined) {
    await requireFreePort(wanted, user);
    return launch(wanted);
  }
  for (let attempt = 1; ; attempt += 1) {
    const port = await findFreePort();
    try {
      return await launch(port);
    } catch (error) {
      if (attempt === ATTEMPTS || (await isPortFree(port))) throw error;
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
