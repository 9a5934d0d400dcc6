import { once } from 'node:events';
import type { AddressInfo, Server } from 'node:net';

/** Lets a server, of HTTP or of TCP, listen on a free port of this machine. @returns http://127.0.0.1:<port> */
export async function listening(server: Server): Promise<string> {
  await once(server.listen(0, '127.0.0.1'), 'listening');
  const { port } = server.address() as AddressInfo;
  return `http://127.0.0.1:${port}`;
}
