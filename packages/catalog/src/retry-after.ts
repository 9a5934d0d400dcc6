/**
 * What a `Retry-After` says: milliseconds from now; undefined without a usable value. Seconds or an HTTP date, which may have passed.
 * Source: RFC 9110, section 10.2.3.
 */
export function parseRetryAfter(value: string | null, now: Date): number | undefined {
  const text = value?.trim() ?? '';
  if (/^\d+$/.test(text)) return Number(text) * 1000;
  const date = /^[A-Z][a-z]+,? /.test(text) ? Date.parse(text) : Number.NaN;
  return Number.isNaN(date) ? undefined : Math.max(0, date - now.getTime());
}
