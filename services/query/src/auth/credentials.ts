/** The bearer token of a request. Source: the API specification, section "Authentication", rule 1. */
import type { IncomingMessage } from 'node:http';
import { ApiError, unauthorized } from '../http/errors.js';

/** RFC 6750, section 2.1; the scheme's case does not matter (RFC 9110, section 11.1). */
const BEARER = /^Bearer +([A-Za-z0-9\-._~+/]+=*)$/i;

/**
 * Takes the token from `Authorization` or `X-Svc-Authorization`; both may be there if they say the same.
 * @throws ApiError `unauthorized`, `conflicting_credentials`
 */
export function readBearerToken({ headersDistinct }: IncomingMessage): string {
  const values = [...(headersDistinct['authorization'] ?? []), ...(headersDistinct['x-svc-authorization'] ?? [])];
  if (values.length === 0) {
    throw unauthorized('Credentials are missing; send Authorization: Bearer <API key or token>.', { presented: false });
  }
  // A value that is no bearer token stands for itself, so that it differs from every token.
  const [first, ...others] = values.map((value) => ({ value, token: BEARER.exec(value)?.[1] }));
  if (others.some(({ value, token }) => (token ?? value) !== (first?.token ?? first?.value))) {
    throw new ApiError(
      400,
      'conflicting_credentials',
      'Authorization and X-Svc-Authorization carry different credentials; send one of them.',
    );
  }
  if (first?.token === undefined) {
    throw unauthorized('The credentials are not a bearer token; send Authorization: Bearer <API key or token>.', {
      presented: true,
    });
  }
  return first.token;
}
