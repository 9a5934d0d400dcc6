/**
 * One process per spool. Each that wants it listens on a socket of its own in the folder, whose name is never used again, and
 * then looks for others: one that answers is alive, so this one gives way; one that refuses is dead for ever, because the kernel
 * closes sockets however a process ends. So nobody waits for a time to pass after `kill -9`, a frozen process keeps its lock,
 * and of two that start at the same moment at least one sees the other. A lock file with a process id has none of this: ids
 * are used again, and differ between containers.
 */
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { readdir, unlink } from 'node:fs/promises';
import { connect, createServer, type Server } from 'node:net';
import { join } from 'node:path';
import { EmitterError, errorMessage } from './problems.js';

const SUFFIX = '.lock';
/** The longest path of a socket on the system that allows least. Node does not refuse a longer one, but cuts it off. */
const LONGEST_PATH = 103;

export interface SpoolLock {
  release(): Promise<void>;
}

/** @throws EmitterError `spool_in_use`; `spool_unusable` when the folder takes no sockets, or its path is too long for one */
export async function lockSpool(directory: string): Promise<SpoolLock> {
  const own = `${randomBytes(4).toString('hex')}${SUFFIX}`;
  const path = join(directory, own);
  if (Buffer.byteLength(path) > LONGEST_PATH) {
    throw new EmitterError(
      'spool_unusable',
      `the path of the spool is too long: ${path} must have at most ${LONGEST_PATH} bytes`,
    );
  }
  const server = await listen(path);
  try {
    for (const entry of await readdir(directory, { withFileTypes: true })) {
      const { name } = entry;
      // A lock is a socket: others may keep files of such names here.
      if (!entry.isSocket() || !name.endsWith(SUFFIX) || name === own) continue;
      const other = join(directory, name);
      if (await isAlive(other)) {
        const message = `another process uses the spool ${directory}; give each process its own`;
        throw new EmitterError('spool_in_use', message);
      }
      await unlink(other).catch(() => undefined);
    }
  } catch (error) {
    await close(server);
    throw error;
  }
  return { release: () => close(server) };
}

async function listen(path: string): Promise<Server> {
  const server = createServer((socket) => socket.destroy());
  server.unref();
  try {
    await once(server.listen(path), 'listening');
    return server;
  } catch (error) {
    throw new EmitterError('spool_unusable', `the spool cannot be locked: ${errorMessage(error)}`, { cause: error });
  }
}

function isAlive(path: string): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect(path, () => {
      socket.destroy();
      resolve(true);
    });
    // Refused: nobody listens any more. Gone: another process has just removed it.
    socket.once('error', ({ code }: NodeJS.ErrnoException) => resolve(code !== 'ECONNREFUSED' && code !== 'ENOENT'));
  });
}

/** Removes its file as well. */
function close(server: Server): Promise<void> {
  return new Promise((resolve) => server.close(() => resolve()));
}
