/** Sends requests as they are, without the courtesies of a client library, and bytes that are none; never waits for ever. */
import { once } from 'node:events';
import { Agent, type IncomingMessage, request } from 'node:http';
import { connect } from 'node:net';
import { buffer } from 'node:stream/consumers';
import { brotliDecompressSync, gunzipSync, inflateSync } from 'node:zlib';

export interface RawRequest {
  readonly method: string;
  /** Path and query as they are sent. */
  readonly target: string;
  /** A list is sent as several lines. */
  readonly headers: Readonly<Record<string, string | string[]>>;
  readonly body?: Buffer | undefined;
}

export interface RawResponse {
  readonly status: number;
  readonly headers: Headers;
  readonly text: string;
}

/** How long a response may take, on the slowest of machines. */
const TIMEOUT_MS = 120_000;

export class HttpClient {
  readonly #port: number;
  readonly #agent: Agent;

  constructor(url: string, connections: number) {
    this.#port = portOf(url);
    this.#agent = new Agent({ keepAlive: true, maxSockets: connections });
  }

  /** @throws Error an AbortError when no response comes; the system's error if the connection breaks */
  async send({ method, target: path, headers, body }: RawRequest): Promise<RawResponse> {
    const to = { agent: this.#agent, host: '127.0.0.1', port: this.#port };
    const sent = request({ ...to, method, path, headers, signal: AbortSignal.timeout(TIMEOUT_MS) });
    // An error may also come after the response, which a server may give before it has read a body.
    sent.on('error', () => undefined).end(body);
    const [response]: IncomingMessage[] = await once(sent, 'response');
    if (!response) throw new Error('a response event without one');
    const responded = new Headers();
    for (const [name, values] of Object.entries(response.headersDistinct)) {
      for (const value of values ?? []) responded.append(name, value);
    }
    const text = decoded(await buffer(response), responded.get('content-encoding')).toString();
    return { status: response.statusCode ?? 0, headers: responded, text };
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

function portOf(url: string): number {
  return Number(new URL(url).port);
}

/**
 * Sends bytes, and reads until the server closes; a reset is an end, too.
 * @param keepsOpen as if more bytes followed
 * @throws Error when the server does not close
 */
export async function exchange(url: string, text: string, { keepsOpen = false } = {}): Promise<string> {
  const socket = connect({ port: portOf(url), host: '127.0.0.1', allowHalfOpen: true, timeout: TIMEOUT_MS });
  const chunks: Buffer[] = [];
  let isLate = false;
  socket
    .on('data', (chunk: Buffer) => chunks.push(chunk))
    .on('error', () => undefined)
    .on('end', () => socket.end())
    .on('timeout', () => {
      isLate = true;
      socket.destroy();
    });
  const closed = new Promise((resolve) => socket.once('close', resolve));
  const bytes = Buffer.from(text, 'latin1');
  if (keepsOpen) socket.write(bytes);
  else socket.end(bytes);
  await closed;
  if (isLate) throw new Error(`${text.slice(0, 200)} was neither answered nor refused`);
  return Buffer.concat(chunks).toString('latin1');
}

/** What came back: the status line with the header fields, and the body, which is undefined unless it is JSON. */
export async function sendBytes(url: string, text: string, options?: { readonly keepsOpen?: boolean }) {
  const [head = '', body = ''] = (await exchange(url, text, options)).split('\r\n\r\n');
  const json: unknown = body.startsWith('{') ? JSON.parse(Buffer.from(body, 'latin1').toString()) : undefined;
  return { status: Number(head.split(' ')[1]), head, body: json };
}

/** Sends them and resets the connection without reading. */
export async function resetAfter(url: string, text: string): Promise<void> {
  const socket = connect(portOf(url), '127.0.0.1');
  await new Promise<void>((resolve) => socket.write(text, () => resolve()));
  const closed = new Promise((resolve) => socket.once('close', resolve));
  socket.resetAndDestroy();
  await closed;
}
