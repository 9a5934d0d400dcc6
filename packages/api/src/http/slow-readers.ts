/** Cuts off clients that do not read their responses in time. */
import type { IncomingMessage, Server, ServerResponse } from 'node:http';
import { onResponseEnd } from './response-end.js';

/** Interval of the check, as a share of the limit. */
const CHECK_SHARE = 0.1;

/**
 * Closes connections whose response has started but is not sent within the limit. Progress in between does not extend the limit: a client
 * that reads a byte now and then could otherwise hold the response forever.
 * @param limitMs exceeded by at most a tenth
 */
export function cutSlowReaders(server: Server, limitMs: number): void {
  /** Responses that are not sent yet, and when a check first saw that their headers were sent. */
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
