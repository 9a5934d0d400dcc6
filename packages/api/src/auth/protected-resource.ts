/**
 * Serves a document that tells clients where to get a token, if they only know the address of the API. Every 401 links to the document.
 * Source: RFC 9728, "OAuth 2.0 Protected Resource Metadata", sections 2, 3 and 5.1.
 */
import type { Request, RequestHandler } from 'express';
import { ApiError, notFound } from '../http/errors.js';
import { SCOPES } from './permissions.js';

export const METADATA_PATH = '/.well-known/oauth-protected-resource';

export interface ProtectedResource {
  readonly issuer: string;
  /** Public address of the API. Undefined: the origin of each request. */
  readonly publicUrl: string | undefined;
}

export function resourceMetadataRoute(resource: ProtectedResource | undefined): RequestHandler {
  return (request, response) => {
    if (!resource) throw noTokens();
    const origin = originOf(resource, request);
    if (origin === undefined) {
      throw new ApiError(400, 'malformed_request', 'The Host header is not a name or an address.');
    }
    response.json({
      resource: origin,
      // Clients can find metadata only for an issuer that is a URL.
      ...(isWebAddress(resource.issuer) && { authorization_servers: [resource.issuer] }),
      scopes_supported: SCOPES,
      bearer_methods_supported: ['header'],
      resource_name: 'Meterline',
      resource_documentation: `${origin}/docs`,
    });
  };
}

export function noTokens(): ApiError {
  return notFound('This service does not accept OAuth2 tokens; ask an admin of the account for an API key.');
}

/** Returns the URL of the document, or undefined if there is none. */
export function metadataUrl(resource: ProtectedResource | undefined, request: Request): string | undefined {
  const origin = resource && originOf(resource, request);
  return origin && origin + METADATA_PATH;
}

/** A host with an optional port. Anything else is rejected, because the value becomes part of a response header. */
const HOST = /^(?:[A-Za-z0-9._-]+|\[[0-9A-Fa-f:.]+\])(?::\d{1,5})?$/;

function originOf({ publicUrl }: ProtectedResource, request: Request): string | undefined {
  if (publicUrl !== undefined) return publicUrl;
  // Express takes these from proxy headers if TRUST_PROXY allows it.
  const { host, protocol } = request;
  return host !== undefined && HOST.test(host) ? `${protocol}://${host}` : undefined;
}

function isWebAddress(text: string): boolean {
  return URL.canParse(text) && /^https?:$/.test(new URL(text).protocol);
}
