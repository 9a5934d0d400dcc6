/**
 * Clients that post, each on a connection of its own, the next request when the last is answered. They read of an answer what they must:
 * on two cores a client that does more takes the time of what it measures.
 */
import { once } from 'node:events';
import { connect, type Socket } from 'node:net';

/** A request as it is sent. */
export function postOf(url: string, headers: Readonly<Record<string, string>>, body: string): Buffer {
  const { host, pathname } = new URL(url);
  const lines = [
    `POST ${pathname} HTTP/1.1`,
    `Host: ${host}`,
    ...Object.entries(headers).map(([name, value]) => `${name}: ${value}`),
    `Content-Length: ${Buffer.byteLength(body)}`,
  ];
  return Buffer.from(`${lines.join('\r\n')}\r\n\r\n${body}`);
}

/**
 * Sends all requests.
 * @param wanted the status of every answer
 * @returns how long each took, in milliseconds, in the order of the answers
 * @throws Error that quotes an answer of another status
 */
export async function postAll(
  url: string,
  requests: readonly Buffer[],
  { clients, wanted }: { clients: number; wanted: number },
): Promise<number[]> {
  const { hostname, port } = new URL(url);
  const sockets = Array.from({ length: Math.min(clients, requests.length) }, () => connect(Number(port), hostname));
  const latencies: number[] = [];
  let next = 0;
  const work = async (socket: Socket) => {
    await once(socket.setNoDelay(), 'connect');
    for (let at = next++; at < requests.length; at = next++) {
      latencies.push(await exchange(socket, requests[at] ?? Buffer.alloc(0), wanted));
    }
  };
  try {
    await Promise.all(sockets.map(work));
  } finally {
    for (const socket of sockets) socket.destroy();
  }
  return latencies;
}

const HEAD_END = '\r\n\r\n';

/** @returns milliseconds */
function exchange(socket: Socket, request: Buffer, wanted: number): Promise<number> {
  const started = performance.now();
  return new Promise((resolve, reject) => {
    let head = '';
    let left = Number.POSITIVE_INFINITY;
    const end = (error?: Error) => {
      socket.off('data', onData).off('error', end).off('close', onClose);
      if (error) reject(error);
      else resolve(performance.now() - started);
    };
    const onClose = () => end(new Error('the connection was closed before the answer'));
    const onData = (piece: Buffer) => {
      if (left === Number.POSITIVE_INFINITY) {
        head += piece.toString('latin1');
        const headEnd = head.indexOf(HEAD_END);
        if (headEnd === -1) return;
        const length = Number(/^content-length: (\d+)/im.exec(head)?.[1]);
        if (!head.startsWith(`HTTP/1.1 ${wanted} `) || Number.isNaN(length)) {
          end(new Error(`answered with ${head.slice(0, 800)}`));
          return;
        }
        left = length - (head.length - headEnd - HEAD_END.length);
      } else {
        left -= piece.length;
      }
      if (left <= 0) end();
    };
    socket.on('data', onData).on('error', end).on('close', onClose);
    socket.write(request);
  });
}
