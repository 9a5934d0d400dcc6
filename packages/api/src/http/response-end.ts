import type { ServerResponse } from 'node:http';
import type { Socket } from 'node:net';

/** Callbacks by connection. They share one `close` listener, because a connection may have many pipelined requests at the same time. */
const pending = new WeakMap<Socket, Set<() => void>>();

/**
 * Calls back once, when the response is sent or its connection is closed. The response's own `close` event is not enough. If the connection is
 * lost, it is never emitted for a pipelined response that waits behind another one.
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
