/** Clients that do not wait for their answer. */
import type { ServerResponse } from 'node:http';

/** The client closed the connection before it had its answer, so nobody reads one. */
export class ClientGone extends Error {
  override readonly name = 'ClientGone';

  constructor() {
    super('the client closed the connection before it had its answer');
  }
}

/** Aborted when the client closes the connection before it has its answer. */
export function goneSignal(response: ServerResponse): AbortSignal {
  const gone = new AbortController();
  if (response.closed) gone.abort(new ClientGone());
  response.once('close', () => {
    if (!response.writableFinished) gone.abort(new ClientGone());
  });
  return gone.signal;
}
