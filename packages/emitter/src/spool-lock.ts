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
import { EmitterError } from './problems.js';

const SUFFIX = '.lock';
/** The longest path of a socket on the system that allows least. Node does not refuse a longer one, but cuts it off. */
const LONGEST_PATH = 103;

/**
 * @returns the lock, which closing releases
 * @throws EmitterError `spool_in_use`, `spool_unusable` when the path is too long; the system's error when the folder takes no sockets
 */
export async function lockSpool(directory: string): Promise<Server> {
  const own = `${randomBytes(4).toString('hex')}${SUFFIX}`;
  const path = join(directory, own);
  if (Buffer.byteLength(path) > LONGEST_PATH) {
    const message = `the path of the spool is too long: ${path} must have at most ${LONGEST_PATH} bytes`;
    throw new EmitterError('spool_unusable', message);
  }
  const server = createServer((socket) => socket.destroy()).unref();
  await once(server.listen(path), 'listening');
  for (const entry of await readdir(directory, { withFileTypes: true })) {
    // A lock is a socket: others may keep files of such names here.
    if (!entry.isSocket() || !entry.name.endsWith(SUFFIX) || entry.name === own) continue;
    const other = join(directory, entry.name);
    if (await isAlive(other)) {
      server.close();
      throw new EmitterError('spool_in_use', `another process uses the spool ${directory}; give each process its own`);
    }
    await unlink(other).catch(() => undefined);
  }
  return server;
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
