/**
 * How a client that knows nothing but the API's address finds out where to get a token: a document that every 401 names.
 * Source: RFC 9728, "OAuth 2.0 Protected Resource Metadata", sections 2, 3 and 5.1.
 */
import type { Request, RequestHandler } from 'express';
import { ApiError, notFound } from '../http/errors.js';
import { SCOPES } from './permissions.js';

export const METADATA_PATH = '/.well-known/oauth-protected-resource';

export interface ProtectedResource {
  /** The `iss` of tokens. */
  readonly issuer: string;
  /** The address under which callers reach the API; undefined: the origin that each request was sent to. */
  readonly publicUrl: string | undefined;
}

/** @param resource undefined where only API keys are accepted */
export function resourceMetadataRoute(resource: ProtectedResource | undefined): RequestHandler {
  return (request, response) => {
    if (!resource) throw noTokens();
    const origin = originOf(resource, request);
    if (origin === undefined) {
      throw new ApiError(400, 'malformed_request', 'The Host of the request is not a name or an address.');
    }
    response.json({
      resource: origin,
      // No metadata can be found for an issuer that is no address.
      ...(isWebAddress(resource.issuer) && { authorization_servers: [resource.issuer] }),
      scopes_supported: SCOPES,
      bearer_methods_supported: ['header'],
      resource_name: 'Meterline',
      resource_documentation: `${origin}/docs`,
    });
  };
}

export function noTokens(): ApiError {
  return notFound('This service accepts no OAuth2 tokens; ask an admin of the account for an API key.');
}

/** Where the document is, for a challenge; undefined if there is none. */
export function metadataUrl(resource: ProtectedResource | undefined, request: Request): string | undefined {
  const origin = resource && originOf(resource, request);
  return origin && origin + METADATA_PATH;
}

/** A name or an address, and perhaps a port. Whatever else a client sends would stand in a header of the response. */
const HOST = /^(?:[A-Za-z0-9._-]+|\[[0-9A-Fa-f:.]+\])(?::\d{1,5})?$/;

function originOf({ publicUrl }: ProtectedResource, request: Request): string | undefined {
  if (publicUrl !== undefined) return publicUrl;
  // Through as many proxies as TRUST_PROXY says.
  const { host, protocol } = request;
  return host !== undefined && HOST.test(host) ? `${protocol}://${host}` : undefined;
}

function isWebAddress(text: string): boolean {
  return URL.canParse(text) && /^https?:$/.test(new URL(text).protocol);
}
