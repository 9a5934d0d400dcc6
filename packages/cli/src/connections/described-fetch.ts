/** What --debug says of each request. */
import { formatCount, systemErrorCode } from '../command.js';

/**
 * A fetch that says of each attempt, retries included: method, path, status, the time until the answer was read, its size and
 * request id, and when it began, in milliseconds since the process did. Nothing of the headers that were sent: the key is
 * among them.
 */
export function describedFetch(say: (line: string) => void): typeof fetch {
  return async (input, init) => {
    const begun = performance.now();
    const { pathname, search } = new URL(input instanceof Request ? input.url : input);
    const asked = `${init?.method ?? 'GET'} ${pathname}${search}`;
    const took = () =>
      `in ${formatCount(Math.round(performance.now() - begun))} ms (${formatCount(Math.round(begun))} ms after the start)`;
    try {
      const { body, headers, status, statusText } = await fetch(input, init);
      const content = await new Response(body).arrayBuffer();
      const id = headers.get('x-request-id') ?? 'none';
      say(`${asked}: ${status} ${took()}, ${formatCount(content.byteLength)} bytes, request ${id}`);
      // An answer without content must have none.
      return new Response(content.byteLength === 0 ? null : content, { headers, status, statusText });
    } catch (error) {
      say(`${asked}: no answer ${took()}: ${reasonOf(error)}`);
      throw error;
    }
  };
}

/** Node's fetch wraps what went wrong: the cause has the code, or says it. */
function reasonOf(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  const { cause } = error;
  return systemErrorCode(cause) ?? systemErrorCode(error) ?? (cause instanceof Error ? cause : error).message;
}
