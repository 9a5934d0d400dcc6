/**
 * Serves a document that tells clients where to get a token if they know only the address of the API. Every 401 response links to the
 * document. Source: RFC 9728, "OAuth 2.0 Protected Resource Metadata", sections 2, 3 and 5.1.
 */
import type { Request, RequestHandler } from 'express';
import { ApiError, notFound } from '../http/errors.js';
import { SCOPES } from './permissions.js';

export const METADATA_PATH = '/.well-known/oauth-protected-resource';

export interface ProtectedResource {
  readonly issuer: string;
  /** The public address of the API. If undefined, the service uses the origin of each request. */
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
      // Clients look up the issuer's metadata by URL, so an issuer that is not a URL is omitted.
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

export function metadataUrl(resource: ProtectedResource | undefined, request: Request): string | undefined {
  const origin = resource && originOf(resource, request);
  return origin && origin + METADATA_PATH;
}

/** Matches a host with an optional port. All other values are rejected, because the host becomes part of a response header. */
const HOST = /^(?:[A-Za-z0-9._-]+|\[[0-9A-Fa-f:.]+\])(?::\d{1,5})?$/;

function originOf({ publicUrl }: ProtectedResource, request: Request): string | undefined {
  if (publicUrl !== undefined) return publicUrl;
  // If TRUST_PROXY is set, Express takes the host and the protocol from the headers that a trusted proxy adds.
  const { host, protocol } = request;
  return host !== undefined && HOST.test(host) ? `${protocol}://${host}` : undefined;
}

function isWebAddress(text: string): boolean {
  return URL.canParse(text) && /^https?:$/.test(new URL(text).protocol);
}
