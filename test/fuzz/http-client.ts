/** Sends requests as they are, without the courtesies of a client library, and never waits for ever. */
import { Agent, request } from 'node:http';
import { connect } from 'node:net';
import { brotliDecompressSync, gunzipSync, inflateSync } from 'node:zlib';

export interface RequestCase {
  readonly method: string;
  /** Path and query as they are sent. */
  readonly target: string;
  /** A list is sent as several lines. */
  readonly headers: Readonly<Record<string, string | string[]>>;
  readonly body?: Buffer | undefined;
}

export interface RawAnswer {
  readonly status: number;
  readonly headers: Headers;
  readonly text: string;
}

/** How long an answer may take, on the slowest of machines. */
const PATIENCE_MS = 120_000;

export class HttpClient {
  readonly #port: number;
  readonly #agent: Agent;

  constructor(url: string, connections: number) {
    this.#port = Number(new URL(url).port);
    this.#agent = new Agent({ keepAlive: true, maxSockets: connections });
  }

  /** @throws Error when none comes; the system's error if the connection breaks */
  send({ method, target, headers, body }: RequestCase): Promise<RawAnswer> {
    return new Promise((resolve, reject) => {
      const sent = request(
        { agent: this.#agent, host: '127.0.0.1', port: this.#port, method, path: target, headers },
        (response) => {
          const chunks: Buffer[] = [];
          response.on('data', (chunk: Buffer) => chunks.push(chunk));
          response.on('error', reject);
          response.on('end', () => {
            clearTimeout(patience);
            const answered = new Headers();
            for (const [name, values] of Object.entries(response.headersDistinct)) {
              for (const value of values ?? []) answered.append(name, value);
            }
            const text = decoded(Buffer.concat(chunks), answered.get('content-encoding')).toString();
            resolve({ status: response.statusCode ?? 0, headers: answered, text });
          });
        },
      );
      const patience = setTimeout(
        () => sent.destroy(new Error(`${method} ${target.slice(0, 200)} was not answered`)),
        PATIENCE_MS,
      );
      sent.on('error', (error) => {
        clearTimeout(patience);
        reject(error);
      });
      sent.end(body);
    });
  }

  /** Sends bytes that need not be HTTP, closes its half, and reads until the server closes. @throws Error when it does not */
  sendBytes(bytes: Buffer): Promise<string> {
    return new Promise((resolve, reject) => {
      const socket = connect({ port: this.#port, host: '127.0.0.1', allowHalfOpen: true });
      const chunks: Buffer[] = [];
      const patience = setTimeout(() => {
        socket.destroy();
        reject(new Error(`${bytes.toString('latin1', 0, 200)} was neither answered nor refused`));
      }, PATIENCE_MS);
      socket.on('data', (chunk: Buffer) => chunks.push(chunk));
      // A reset is an answer too: the server does not wait.
      socket.on('error', () => undefined);
      socket.on('end', () => socket.end());
      socket.on('close', () => {
        clearTimeout(patience);
        resolve(Buffer.concat(chunks).toString('latin1'));
      });
      socket.end(bytes);
    });
  }

  close(): void {
    this.#agent.destroy();
  }
}

function decoded(body: Buffer, encoding: string | null): Buffer {
  if (body.length === 0) return body;
  if (encoding === 'br') return brotliDecompressSync(body);
  if (encoding === 'gzip') return gunzipSync(body);
  return encoding === 'deflate' ? inflateSync(body) : body;
}
