/** Explains why a connection failed if the cause is a wrong name or certificate, and not a server that is down. */

/** Maps error codes of getaddrinfo and OpenSSL to hints. Source: Node.js documentation, "TLS", X509 certificate error codes. */
const HINTS = [
  [/^(ENOTFOUND|EAI_AGAIN)$/, 'its name does not resolve: check the name and DNS'],
  [
    /SELF_SIGNED_CERT|^UNABLE_TO_(GET_ISSUER_CERT|VERIFY_LEAF_SIGNATURE)/,
    'its certificate is not trusted: name the file of its authority in NODE_EXTRA_CA_CERTS',
  ],
  [/^CERT_HAS_EXPIRED$/, 'its certificate has expired: renew it'],
  [/^ERR_TLS_CERT_ALTNAME_INVALID$/, 'its certificate is for another name: use that name in the address'],
] as const;

/** Returns a hint for the end of an error message that explains how to fix the connection. Returns undefined if the server may be down. */
export function connectionHint(error: unknown): string | undefined {
  if (typeof error !== 'object' || error === null) return undefined;
  const code = 'code' in error ? String(error.code) : '';
  const [, hint] = HINTS.find(([codes]) => codes.test(code)) ?? [];
  // A connection to a name with several addresses fails with an AggregateError, and `fetch` wraps the error in a cause.
  const reasons: unknown[] = 'errors' in error && Array.isArray(error.errors) ? [...error.errors] : [];
  if ('cause' in error) reasons.push(error.cause);
  return hint ?? reasons.map(connectionHint).find((found) => found !== undefined);
}
