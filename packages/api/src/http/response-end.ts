/** Detects the end of a response, including pipelined responses of a connection that is lost. */
import type { ServerResponse } from 'node:http';
import type { Socket } from 'node:net';

/** Callbacks per connection. Each connection has only one `close` listener, because there may be many pipelined requests. */
const pending = new WeakMap<Socket, Set<() => void>>();

/**
 * Calls back once, when the response is sent or its connection is closed. The `close` event of the response is not enough: a response that
 * waits behind another response of its connection (pipelining) does not emit it when the connection is lost.
 */
export function onResponseEnd(socket: Socket, response: ServerResponse, callback: () => void): void {
  const waiting = pending.get(socket) ?? listenTo(socket);
  const end = () => {
    if (waiting.delete(end)) callback();
  };
  waiting.add(end);
  response.once('close', end);
  if (socket.destroyed) end();
}

function listenTo(socket: Socket): Set<() => void> {
  const waiting = new Set<() => void>();
  pending.set(socket, waiting);
  socket.once('close', () => {
    for (const end of waiting) end();
  });
  return waiting;
}
