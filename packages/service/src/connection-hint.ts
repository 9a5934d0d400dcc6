/** Explains connections that fail for another reason than a server that is down. */

const UNTRUSTED = 'its certificate is not trusted: name the file of its authority in NODE_EXTRA_CA_CERTS';
const UNRESOLVED = 'its name does not resolve: check the name and DNS';

/** By the codes of getaddrinfo and of OpenSSL. Source: Node.js documentation, "TLS", X509 certificate error codes. */
const HINTS = new Map<unknown, string>([
  ['ENOTFOUND', UNRESOLVED],
  ['EAI_AGAIN', UNRESOLVED],
  ['DEPTH_ZERO_SELF_SIGNED_CERT', UNTRUSTED],
  ['SELF_SIGNED_CERT_IN_CHAIN', UNTRUSTED],
  ['UNABLE_TO_GET_ISSUER_CERT', UNTRUSTED],
  ['UNABLE_TO_GET_ISSUER_CERT_LOCALLY', UNTRUSTED],
  ['UNABLE_TO_VERIFY_LEAF_SIGNATURE', UNTRUSTED],
  ['CERT_HAS_EXPIRED', 'its certificate has expired: renew it'],
  ['ERR_TLS_CERT_ALTNAME_INVALID', 'its certificate is for another name: use that name in the address'],
]);

/** How to fix the connection, as text to append to what failed; undefined if the server may be down. */
export function connectionHint(error: unknown): string | undefined {
  if (typeof error !== 'object' || error === null) return undefined;
  const hint = 'code' in error ? HINTS.get(error.code) : undefined;
  // A name with several addresses fails with the errors of all, and fetch wraps the reason.
  const reasons: unknown[] = 'errors' in error && Array.isArray(error.errors) ? [...error.errors] : [];
  if ('cause' in error) reasons.push(error.cause);
  return hint ?? reasons.map(connectionHint).find((found) => found !== undefined);
}
