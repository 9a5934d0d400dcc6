/** Checks a request before its parameters are parsed: the URL, the Host and Expect headers, and the API version. */
import type { IncomingMessage, ServerResponse } from 'node:http';
import { API_VERSIONS, type ApiVersion, EARLIEST_API_VERSION, isApiVersion } from '@meterline/catalog';
import type { RequestHandler } from 'express';
import { ApiError } from './errors.js';

/**
 * In bytes, because a URL is ASCII. The longest URL with one value per filter has about 16 KiB. It contains a cursor and four names (the account
 * and three filters). A name has at most 256 code points, which take up to 3,072 bytes when they are percent-encoded.
 */
const MAX_URL_LENGTH = 24 * 1024;

const VISIBLE_ASCII = /^[\x21-\x7e]*$/;

export const checkRequestTarget: RequestHandler = (request, _response, next) => {
  const { originalUrl } = request;
  if (originalUrl.length > MAX_URL_LENGTH) {
    throw new ApiError(414, 'url_too_long', `The URL is longer than ${MAX_URL_LENGTH} bytes; shorten its parameters.`);
  }
  // RFC 9112, section 3.2. Node would reject a missing Host header without an error body, and would use the first of several Host headers.
  if (request.httpVersion === '1.1' && request.headersDistinct['host']?.length !== 1) {
    throw new ApiError(400, 'malformed_request', 'An HTTP/1.1 request must have one Host header.');
  }
  // RFC 9110, section 10.1.1, defines the header and the status 417.
  const { expect } = request.headers;
  if (expect !== undefined && expect.toLowerCase() !== '100-continue') {
    throw new ApiError(417, 'expectation_failed', 'The only supported expectation is Expect: 100-continue.');
  }
  if (!VISIBLE_ASCII.test(originalUrl) || !isPercentEncodedUtf8(originalUrl)) {
    throw new ApiError(
      400,
      'malformed_url',
      'The URL is not percent-encoded UTF-8; encode each parameter as encodeURIComponent does.',
    );
  }
  next();
};

export function rawQuery({ url = '' }: IncomingMessage): string {
  const mark = url.indexOf('?');
  return mark < 0 ? '' : url.slice(mark + 1);
}

export const VERSION_HEADER = 'Svc-Version';

/** Reads the requested version, and sets the response header. Source: docs/api-contract.md, "Versions". @throws `invalid_api_version` */
export function applyVersion({ headers }: IncomingMessage, response: ServerResponse): ApiVersion {
  const version = String(headers['svc-version'] ?? EARLIEST_API_VERSION);
  if (!isApiVersion(version)) {
    throw new ApiError(
      400,
      'invalid_api_version',
      `${JSON.stringify(version)} is not a version of this API; the versions are ${API_VERSIONS.join(', ')}.`,
    );
  }
  response.setHeader(VERSION_HEADER, version);
  return version;
}

function isPercentEncodedUtf8(text: string): boolean {
  try {
    // Always true. The comparison keeps the call in the bundle: rolldown removes a call with an unused result, even if it may throw.
    return decodeURIComponent(text).length <= text.length;
  } catch {
    return false;
  }
}
