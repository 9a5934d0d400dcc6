/** A TCP proxy between a worker and a server, which can fail in several ways. */
import { once } from 'node:events';
import { connect, createServer, type Server, type Socket } from 'node:net';
import { listening } from '../harness/listening.js';

const LOOPBACK = '127.0.0.1';

/**
 * - `pass`: everything is forwarded
 * - `hang`: connections stay open and nothing gets through, nor is anything lost
 * - `refuse`: every connection is reset, new ones at once
 * - `cut`: a connection is reset once it has carried so many bytes towards the server
 * - `hold`: a connection hangs from the moment at which it carries this text towards the server, which gets none of it
 * - `swallow`: a connection is reset in place of an HTTP answer that says 200
 */
export type LinkTreatment =
  | { readonly kind: 'pass' | 'hang' | 'refuse' | 'swallow' }
  | { readonly kind: 'cut'; readonly afterBytes: () => number }
  | { readonly kind: 'hold'; readonly text: string };

const PASS: LinkTreatment = { kind: 'pass' };

export class TcpProxy {
  readonly port: number;
  readonly #server: Server;
  readonly #links = new Set<Link>();
  #treatment: LinkTreatment = PASS;
  #breaks = 0;

  private constructor(server: Server, port: number, targetPort: number) {
    this.#server = server;
    this.port = port;
    server.on('connection', (client) => {
      const link = new Link(client, targetPort, () => {
        this.#breaks += 1;
      });
      link.closed.then(() => this.#links.delete(link));
      this.#links.add(link);
      link.treat(this.#treatment);
    });
  }

  static async open(targetPort: number): Promise<TcpProxy> {
    const server = createServer();
    const { port } = new URL(await listening(server));
    return new TcpProxy(server, Number(port), targetPort);
  }

  /** The number of connections broken on purpose since the current treatment began. */
  get breaks(): number {
    return this.#breaks;
  }

  /** Sets the treatment of all connections, open and new. */
  treat(treatment: LinkTreatment): void {
    this.#breaks = 0;
    this.#treatment = treatment;
    for (const link of this.#links) link.treat(treatment);
  }

  /** The connections that are open now never forward anything again; new ones are not affected. */
  forsake(): void {
    for (const link of this.#links) link.forsake();
  }

  async close(): Promise<void> {
    for (const link of this.#links) link.reset();
    this.#server.close();
    await once(this.#server, 'close');
  }
}

/** A client's connection and the one to the server that belongs to it. */
class Link {
  readonly closed: Promise<unknown>;
  readonly #client: Socket;
  readonly #upstream: Socket;
  readonly #onBreak: () => void;
  #treatment: LinkTreatment = PASS;
  #bytesLeft = Infinity;
  #held: Buffer | undefined;
  #isOver = false;

  constructor(client: Socket, targetPort: number, onBreak: () => void) {
    this.#client = client;
    this.#upstream = connect(targetPort, LOOPBACK);
    this.#onBreak = onBreak;
    this.closed = Promise.all([closed(client), closed(this.#upstream)]);
    for (const [socket, other] of [
      [client, this.#upstream],
      [this.#upstream, client],
    ] as const) {
      // An error is followed by `close`.
      socket.on('error', () => undefined);
      socket.on('end', () => other.end());
    }
    client.on('close', () => this.#upstream.end().resume());
    this.#upstream.on('close', () => client.destroy());
    client.on('data', (chunk: Buffer) => this.#fromClient(chunk));
    this.#upstream.on('data', (chunk: Buffer) => this.#fromServer(chunk));
  }

  treat(treatment: LinkTreatment): void {
    if (this.#isOver) return;
    this.#treatment = treatment;
    this.#bytesLeft = treatment.kind === 'cut' ? treatment.afterBytes() : Infinity;
    if (treatment.kind === 'refuse') this.#break();
    if (this.#held && treatment.kind === 'hold') return;
    if (this.#held) this.#upstream.write(this.#held);
    this.#held = undefined;
    for (const socket of [this.#client, this.#upstream]) {
      if (treatment.kind === 'hang') socket.pause();
      else socket.resume();
    }
  }

  forsake(): void {
    this.#isOver = true;
    this.#client.pause();
    this.#upstream.pause();
    this.#onBreak();
  }

  /**
   * The client sees a reset. The server sees the end of the stream in the middle of it and is left to close: a reset at
   * that point ends the embedded engine itself (clickhouse-local, ClickHouse issue 115666; a server is not affected).
   */
  reset(): void {
    this.#isOver = true;
    this.#client.resetAndDestroy();
    this.#upstream.end().resume();
  }

  #fromClient(chunk: Buffer): void {
    if (this.#treatment.kind === 'hold' && chunk.includes(this.#treatment.text)) {
      this.#held = chunk;
      this.#client.pause();
      this.#onBreak();
      return;
    }
    if (chunk.length < this.#bytesLeft) {
      this.#bytesLeft -= chunk.length;
      this.#upstream.write(chunk);
      return;
    }
    // The server must receive the part before the cut, so the cut waits until it has been sent.
    this.#client.pause();
    this.#upstream.write(chunk.subarray(0, this.#bytesLeft), () => this.#break());
  }

  #fromServer(chunk: Buffer): void {
    const isSuccess = this.#treatment.kind === 'swallow' && chunk.toString('latin1', 0, 12) === 'HTTP/1.1 200';
    if (isSuccess) this.#break();
    else this.#client.write(chunk);
  }

  #break(): void {
    if (this.#isOver) return;
    this.#onBreak();
    this.reset();
  }
}

/** Never rejects, unlike `once` of node:events, for which an error before the close is a failure. */
function closed(socket: Socket): Promise<void> {
  return new Promise((resolve) => {
    socket.once('close', () => resolve());
  });
}
