/**
 * Closing an HTTP server without cutting a response or losing a request. Node's own `close` does both: it takes a connection
 * for idle as soon as its response is handed over, though most of it may not be sent yet, and resets it; and it resets
 * connections on which the next request is already on its way.
 */
import { once } from 'node:events';
import type { IncomingMessage, Server, ServerResponse } from 'node:http';
import { Server as NetServer, type Socket } from 'node:net';
import { startError } from './start-error.js';

/** How long a connection without a request is kept, for one that is on its way: more than a round trip. */
const IDLE_MS = 250;

interface Connection {
  readonly socket: Socket;
  /** In the order of their requests. */
  readonly unanswered: Set<ServerResponse>;
  /** Bytes, up to the last response; what came after it is the beginning of a request. */
  received: number;
}

export class DrainingServer {
  readonly #connections = new Map<Socket, Connection>();
  readonly #server: Server;
  #isDraining = false;

  /** Watches the server's connections, so it is to be made before the server listens. */
  constructor(server: Server) {
    this.#server = server;
    server.on('connection', (socket: Socket) => this.#opened(socket));
    // Before the application, which may answer at once.
    server.prependListener('request', (request, response) => this.#requested(request, response));
  }

  /**
   * @param variable that the port came from @param host the address in LISTEN_HOST; undefined: all of this machine
   * @returns the port: the one that the system chose, if 0 was given. @throws StartError when it is in use
   */
  async listen(port: number, variable: string, host: string | undefined): Promise<number> {
    this.#server.listen({ port, host });
    try {
      await once(this.#server, 'listening');
    } catch (error) {
      const place = host === undefined ? `port ${port}` : `port ${port} of ${host}`;
      const others = host === undefined ? '' : ', or LISTEN_HOST to an address of this machine';
      throw startError(`cannot listen on ${place}; free it or set ${variable} to another${others}`, error);
    }
    const address = this.#server.address();
    if (address === null || typeof address === 'string') throw new TypeError('the server has no port');
    return address.port;
  }

  /**
   * Requests that arrive are still answered, and every response closes its connection. Resolves when no connection is left.
   * @param deadlineMs what is not finished by then is cut off
   * @param acceptMs how long connections are still accepted, so that load balancers can notice; the deadline begins then
   */
  async drain(deadlineMs: number, acceptMs = 0): Promise<void> {
    this.#isDraining = true;
    for (const connection of this.#connections.values()) {
      const last = [...connection.unanswered].at(-1);
      if (last) closeAfter(last);
      else this.#endWhenIdle(connection);
    }
    // Even without a delay not at once: connections that the system has accepted already would be reset.
    await new Promise((resolve) => setTimeout(resolve, acceptMs));
    const closed = new Promise<void>((resolve) => {
      // The `close` of a TCP server: that of an HTTP server resets connections, as the top of this file says.
      NetServer.prototype.close.call(this.#server, () => resolve());
    });
    const deadline = setTimeout(() => {
      for (const socket of this.#connections.keys()) socket.destroy();
    }, deadlineMs);
    await closed;
    clearTimeout(deadline);
  }

  #opened(socket: Socket): void {
    const connection = { socket, unanswered: new Set<ServerResponse>(), received: 0 };
    this.#connections.set(socket, connection);
    socket.once('close', () => this.#connections.delete(socket));
    if (this.#isDraining) this.#endWhenIdle(connection);
  }

  #requested({ socket }: IncomingMessage, response: ServerResponse): void {
    const connection = this.#connections.get(socket);
    if (!connection) return;
    connection.unanswered.add(response);
    if (this.#isDraining) closeAfter(response);
    // Only then the system has all of the response.
    response.once('close', () => {
      connection.unanswered.delete(response);
      connection.received = socket.bytesRead;
      if (this.#isDraining) this.#endWhenIdle(connection);
    });
  }

  /** Ends the connection unless a request begins to arrive within a moment; that one is answered. */
  #endWhenIdle(connection: Connection): void {
    const timer = setTimeout(() => {
      const { socket, unanswered, received } = connection;
      if (unanswered.size === 0 && socket.bytesRead === received) socket.destroySoon();
    }, IDLE_MS);
    timer.unref();
  }
}

function closeAfter(response: ServerResponse): void {
  if (!response.headersSent) response.setHeader('Connection', 'close');
}
