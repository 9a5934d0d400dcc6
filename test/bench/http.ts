/** HTTP clients that add little to the measured time: on two cores one that does more takes the time of what it measures. */
import { once } from 'node:events';
import { Agent, request } from 'node:http';
import { connect, type Socket } from 'node:net';

export interface Response {
  readonly status: number;
  readonly body: Buffer;
  /** From the call to the last byte of the response. */
  readonly ms: number;
}

/** With keep-alive. */
export class HttpClient {
  readonly #agent: Agent;

  constructor(connections = 1) {
    this.#agent = new Agent({ keepAlive: true, maxSockets: connections });
  }

  get(url: string, headers: Readonly<Record<string, string>>): Promise<Response> {
    const started = performance.now();
    return new Promise((resolve, reject) => {
      const sent = request(url, { headers, agent: this.#agent }, (response) => {
        const chunks: Buffer[] = [];
        response.on('data', (chunk: Buffer) => chunks.push(chunk));
        response.once('error', reject);
        response.once('end', () => {
          const [status, ms] = [response.statusCode ?? 0, performance.now() - started];
          resolve({ status, ms, body: Buffer.concat(chunks) });
        });
      });
      sent.once('error', reject);
      sent.end();
    });
  }

  /** @throws Error that quotes the response, if its status is not 200 */
  async ok(url: string, key: string): Promise<Response> {
    const response = await this.get(url, { authorization: `Bearer ${key}` });
    if (response.status !== 200) throw new Error(`answered with ${response.status}: ${response.body}`);
    return response;
  }

  close(): void {
    this.#agent.destroy();
  }
}

/**
 * Posts all bodies, each client on a connection of its own, the next when the last is answered, and reads of a response what it must.
 * @returns how long each took, in milliseconds, in the order of the responses
 * @throws Error that quotes a response other than 202
 */
export async function postAll(
  address: string,
  key: string,
  bodies: readonly string[],
  clients: number,
): Promise<number[]> {
  const { hostname, port, pathname } = new URL(address);
  const head = `POST ${pathname} HTTP/1.1\r\nHost: ${hostname}\r\nAuthorization: Bearer ${key}\r\nContent-Type: application/json\r\n`;
  const requests = bodies.map((body) => `${head}Content-Length: ${Buffer.byteLength(body)}\r\n\r\n${body}`);
  const sockets = Array.from({ length: Math.min(clients, requests.length) }, () => connect(Number(port), hostname));
  const latencies: number[] = [];
  const work = async (socket: Socket) => {
    await once(socket.setNoDelay(), 'connect');
    for (let next = requests.pop(); next !== undefined; next = requests.pop()) {
      latencies.push(await exchange(socket, next));
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
function exchange(socket: Socket, sent: string): Promise<number> {
  const started = performance.now();
  return new Promise((resolve, reject) => {
    let text = '';
    const end = (error?: Error) => {
      socket.off('data', onData).off('error', end).off('close', onClose);
      if (error) reject(error);
      else resolve(performance.now() - started);
    };
    const onClose = () => end(new Error('the connection was closed before the response'));
    const onData = (piece: Buffer) => {
      text += piece.toString('latin1');
      const headEnd = text.indexOf(HEAD_END);
      if (headEnd === -1) return;
      const length = Number(/^content-length: (\d+)/im.exec(text)?.[1]);
      if (!text.startsWith('HTTP/1.1 202 ') || Number.isNaN(length)) end(new Error(`answered with ${text}`));
      else if (text.length >= headEnd + HEAD_END.length + length) end();
    };
    socket.on('data', onData).on('error', end).on('close', onClose);
    socket.write(sent);
  });
}
