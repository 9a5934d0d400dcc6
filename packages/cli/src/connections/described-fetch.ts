/** What --debug says of each request. */
import type { Fetch } from '@meterline/client';
import { formatCount, systemErrorCode } from '../command.js';

/**
 * A fetch that says of each attempt, retries included: method, path, status, the time until the answer was read, its size and
 * request id, and when it began, in milliseconds since the process did. Nothing of the headers that were sent: the key is
 * among them.
 */
export function describedFetch(fetch: Fetch, say: (line: string) => void): Fetch {
  return async (url, init) => {
    const begun = performance.now();
    const { pathname, search } = new URL(url);
    const asked = `${init.method} ${pathname}${search}`;
    const took = () =>
      `in ${formatCount(Math.round(performance.now() - begun))} ms (${formatCount(Math.round(begun))} ms after the start)`;
    try {
      const answer = await fetch(url, init);
      const text = await answer.text();
      const { ok, status, headers } = answer;
      const id = headers.get('x-request-id') ?? 'none';
      say(`${asked}: ${status} ${took()}, ${formatCount(Buffer.byteLength(text))} bytes, request ${id}`);
      return { ok, status, headers, text: async () => text };
    } catch (error) {
      say(`${asked}: no answer ${took()}: ${reasonOf(error)}`);
      throw error;
    }
  };
}

/** Node's fetch, which follows a redirection, wraps what went wrong: the cause has the code, or says it. */
function reasonOf(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  const { cause } = error;
  return systemErrorCode(cause) ?? systemErrorCode(error) ?? (cause instanceof Error ? cause : error).message;
}
