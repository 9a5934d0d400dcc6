/**
 * Ensures that only one process uses a spool. Each process listens on a Unix socket with a unique name in the folder. It then tries to
 * connect to all other sockets in the folder. If a socket accepts the connection, its process is alive and owns the spool. If connecting
 * fails with ECONNREFUSED, its process is gone, because the kernel closes sockets however a process ends.
 *
 * A start after `kill -9` therefore does not wait, and a frozen process keeps its lock. If two processes start together, at least one sees
 * the other and fails. A lock file with a process ID would not ensure this, because IDs are reused and differ between containers.
 */
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { readdir, unlink } from 'node:fs/promises';
import { connect, createServer, type Server } from 'node:net';
import { join } from 'node:path';
import { EmitterError } from './problems.js';

const SUFFIX = '.lock';
/** Maximum length of a socket path on macOS, which has the lowest limit. Node silently truncates longer paths. */
const MAX_PATH_BYTES = 103;

/**
 * Locks the folder. Closing the returned server releases the lock.
 * @throws EmitterError `spool_in_use`, or `spool_unusable` if the path is too long
 * @throws the system's error if the folder does not support sockets
 */
export async function lockSpool(directory: string): Promise<Server> {
  const own = `${randomBytes(4).toString('hex')}${SUFFIX}`;
  const path = join(directory, own);
  if (Buffer.byteLength(path) > MAX_PATH_BYTES) {
    const message = `the path of the spool is too long: ${path} must have at most ${MAX_PATH_BYTES} bytes`;
    throw new EmitterError('spool_unusable', message);
  }
  const server = createServer((socket) => socket.destroy()).unref();
  await once(server.listen(path), 'listening');
  for (const entry of await readdir(directory, { withFileTypes: true })) {
    // All locks are sockets, so skip any other file with this suffix.
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
    // After ECONNREFUSED, the owner is gone. After ENOENT, another process has just removed the socket.
    socket.once('error', ({ code }: NodeJS.ErrnoException) => resolve(code !== 'ECONNREFUSED' && code !== 'ENOENT'));
  });
}
