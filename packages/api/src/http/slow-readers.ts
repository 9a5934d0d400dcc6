/** Closes connections of clients that do not read their responses in time. */
import type { IncomingMessage, Server, ServerResponse } from 'node:http';
import { onResponseEnd } from './response-end.js';

/** The interval between checks, as a share of the limit. */
const CHECK_SHARE = 0.1;

/**
 * Closes a connection if its response has started but is not completely sent within the limit. Progress does not extend the limit. Otherwise, a
 * client that reads one byte now and then could hold the response forever.
 * @param limitMs the limit. Checks happen at intervals, so it may be exceeded by up to a tenth.
 */
export function cutSlowReaders(server: Server, limitMs: number): void {
  /** Maps each unsent response to the time when a check first saw that sending had started. The time is undefined before that. */
  const unsent = new Map<ServerResponse, number | undefined>();
  server.prependListener('request', ({ socket }: IncomingMessage, response: ServerResponse) => {
    unsent.set(response, undefined);
    onResponseEnd(socket, response, () => unsent.delete(response));
  });
  const check = () => {
    const now = performance.now();
    for (const [response, since] of unsent) {
      if (!response.headersSent) continue;
      if (since === undefined) unsent.set(response, now);
      else if (now - since >= limitMs) response.socket?.destroy();
    }
  };
  const timer = setInterval(check, limitMs * CHECK_SHARE).unref();
  server.once('close', () => clearInterval(timer));
}
