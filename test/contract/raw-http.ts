/** Sends bytes that no HTTP client would send. */
import { connect } from 'node:net';

export interface RawAnswer {
  readonly status: number;
  /** The status line and the header fields. */
  readonly head: string;
  /** Undefined for an answer without one. */
  readonly body: unknown;
}

/** Sends them and reads until the server closes. @param keepsOpen as if more bytes followed */
export async function sendBytes(url: string, text: string, { keepsOpen = false } = {}): Promise<RawAnswer> {
  const socket = connect(Number(new URL(url).port), '127.0.0.1');
  const bytes = Buffer.from(text, 'latin1');
  if (keepsOpen) socket.write(bytes);
  else socket.end(bytes);
  const chunks: Buffer[] = [];
  for await (const chunk of socket) chunks.push(Buffer.from(chunk));
  const [head = '', body = ''] = Buffer.concat(chunks).toString().split('\r\n\r\n');
  return { status: Number(head.split(' ')[1]), head, body: body.startsWith('{') ? JSON.parse(body) : undefined };
}

/** Sends them and resets the connection without reading. */
export async function resetAfter(url: string, text: string): Promise<void> {
  const socket = connect(Number(new URL(url).port), '127.0.0.1');
  await new Promise<void>((resolve) => socket.write(text, () => resolve()));
  const closed = new Promise((resolve) => socket.once('close', resolve));
  socket.resetAndDestroy();
  await closed;
}
