/**
 * Closes an HTTP server without truncating responses or losing requests. Node's own `close` may do both. It considers a connection idle once the
 * response has been written, and resets the connection although most of the response may not be sent yet. It also resets connections on which
 * the next request is already in transit.
 */
import { once } from 'node:events';
import type { IncomingMessage, Server, ServerResponse } from 'node:http';
import { Server as NetServer, type Socket } from 'node:net';
import { startError } from './start-error.js';

/** How long an idle connection stays open for a request that may be in transit. This is longer than a round trip. */
const IDLE_MS = 250;

interface Connection {
  readonly socket: Socket;
  /** Responses that are not complete, in the order of their requests. */
  readonly openResponses: Set<ServerResponse>;
  /** The number of bytes received when the last response was complete. Any later byte belongs to a new request. */
  received: number;
}

export class DrainingServer {
  readonly #connections = new Map<Socket, Connection>();
  readonly #server: Server;
  #isDraining = false;

  /** Tracks the server's connections, so it must be created before the server listens. */
  constructor(server: Server) {
    this.#server = server;
    server.on('connection', (socket: Socket) => this.#opened(socket));
    // This listener must be the first, because the application may respond synchronously.
    server.prependListener('request', (request, response) => this.#requested(request, response));
  }

  /** Returns the actual port, even if port 0 was requested. Without a host, listens on all addresses. @throws StartError */
  async listen(port: number, variable: string, host: string | undefined): Promise<number> {
    this.#server.listen({ port, host });
    try {
      await once(this.#server, 'listening');
    } catch (error) {
      const address = host === undefined ? `port ${port}` : `port ${port} of ${host}`;
      const hint = host === undefined ? '' : ', or LISTEN_HOST to an address of this machine';
      throw startError(`cannot listen on ${address}; free it or set ${variable} to another${hint}`, error);
    }
    const address = this.#server.address();
    if (address === null || typeof address === 'string') throw new TypeError('the server has no port');
    return address.port;
  }

  /**
   * Closes the server. Requests that still arrive get a response, and every response closes its connection. Resolves when all connections
   * are closed.
   * @param deadlineMs after this time, the remaining connections are destroyed
   * @param acceptMs how long to keep accepting connections, so that load balancers can react; the deadline starts afterwards
   */
  async drain(deadlineMs: number, acceptMs = 0): Promise<void> {
    this.#isDraining = true;
    for (const connection of this.#connections.values()) {
      const last = [...connection.openResponses].at(-1);
      if (last) closeAfter(last);
      else this.#endWhenIdle(connection);
    }
    // Even for a delay of 0, wait one tick. Otherwise, connections that the system has already accepted would be reset.
    await new Promise((resolve) => setTimeout(resolve, acceptMs));
    const closed = new Promise<void>((resolve) => {
      // This is the `close` of the TCP server class, because the HTTP server's own `close` resets connections.
      NetServer.prototype.close.call(this.#server, () => resolve());
    });
    const deadline = setTimeout(() => {
      for (const socket of this.#connections.keys()) socket.destroy();
    }, deadlineMs);
    await closed;
    clearTimeout(deadline);
  }

  #opened(socket: Socket): void {
    const connection = { socket, openResponses: new Set<ServerResponse>(), received: 0 };
    this.#connections.set(socket, connection);
    socket.once('close', () => this.#connections.delete(socket));
    if (this.#isDraining) this.#endWhenIdle(connection);
  }

  #requested({ socket }: IncomingMessage, response: ServerResponse): void {
    const connection = this.#connections.get(socket);
    if (!connection) return;
    connection.openResponses.add(response);
    if (this.#isDraining) closeAfter(response);
    // When `close` is emitted, the whole response has been handed to the operating system.
    response.once('close', () => {
      connection.openResponses.delete(response);
      connection.received = socket.bytesRead;
      if (this.#isDraining) this.#endWhenIdle(connection);
    });
  }

  /** Closes the connection, unless a request starts to arrive within {@link IDLE_MS}. */
  #endWhenIdle(connection: Connection): void {
    const timer = setTimeout(() => {
      const { socket, openResponses, received } = connection;
      if (openResponses.size === 0 && socket.bytesRead === received) socket.destroySoon();
    }, IDLE_MS);
    timer.unref();
  }
}

function closeAfter(response: ServerResponse): void {
  if (!response.headersSent) response.setHeader('Connection', 'close');
}
