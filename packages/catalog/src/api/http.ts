/** Defines HTTP conventions that the clients of the API and of the collector share. */

/** Matches account IDs that cannot be a segment of a URL path: an empty ID, `.` and `..`. Clients would resolve the dots, even encoded ones. */
export const NO_ACCOUNT_PATH = /^\.{0,2}$/;

/**
 * Normalizes the address of an API or a collector, so that two addresses can be compared. Removes trailing slashes and then `/v0`.
 * @param errorOf creates the error from a problem, which continues a message that starts with the name of the setting. The problem never
 * contains the address, which may contain a secret.
 * @throws the created error, unless the address is an http or https URL with only a host, a port and a path
 */
export function serviceAddress(text: string, errorOf: (problem: string) => Error): string {
  const url = URL.canParse(text) ? new URL(text) : undefined;
  if (!url || !/^https?:$/.test(url.protocol)) {
    throw errorOf('must be a URL such as https://billing.example.com or http://127.0.0.1:8080');
  }
  if (url.username || url.password || url.search || url.hash) {
    throw errorOf('must be a URL without user and password, ? and #; pass an API key separately');
  }
  return `${url.origin}${url.pathname}`.replace(/\/+$/, '').replace(/\/v0$/, '');
}

/**
 * Parses a `Retry-After` header, which contains seconds or an HTTP date. Source: RFC 9110, section 10.2.3.
 * @returns milliseconds from now (0 for a past date), or undefined if the value is unusable
 */
export function parseRetryAfter(value: string | null, now: Date): number | undefined {
  const text = value?.trim() ?? '';
  if (/^\d+$/.test(text)) return Number(text) * 1000;
  const date = /^[A-Z][a-z]+,? /.test(text) ? Date.parse(text) : Number.NaN;
  return Number.isNaN(date) ? undefined : Math.max(0, date - now.getTime());
}

/** Returns true if the service, or a proxy in front of it, failed or is unavailable. Clients then retry idempotent requests. */
export function isAwayStatus(status: number): boolean {
  return [408, 500, 502, 503, 504].includes(status);
}
