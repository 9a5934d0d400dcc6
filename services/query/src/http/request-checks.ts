/** What must hold before a request is routed: its target can be read, and is not longer than any real one. */
import type { Request, RequestHandler } from 'express';
import { ApiError } from './errors.js';

/**
 * Characters; a target is ASCII, so these are bytes. A name's 256 code points are up to 3,072 of them, and the longest
 * real target has four names, the account's and three filters, beside a cursor that holds two more: some 16 KiB.
 */
const MAX_URL_LENGTH = 24 * 1024;

const VISIBLE_ASCII = /^[\x21-\x7e]*$/;

export const checkRequestTarget: RequestHandler = (request, _response, next) => {
  const { originalUrl } = request;
  if (originalUrl.length > MAX_URL_LENGTH) {
    throw new ApiError(414, 'url_too_long', `The URL is longer than ${MAX_URL_LENGTH} bytes; shorten its parameters.`);
  }
  // RFC 9112, section 3.2; Node would answer a missing one by itself, without a body, and take the first of several.
  if (request.httpVersion === '1.1' && request.headersDistinct['host']?.length !== 1) {
    throw new ApiError(400, 'malformed_request', 'An HTTP/1.1 request must have one Host header.');
  }
  // RFC 9110, section 10.1.1.
  const { expect } = request.headers;
  if (expect !== undefined && expect.toLowerCase() !== '100-continue') {
    throw new ApiError(417, 'expectation_failed', 'Expect: 100-continue is the only expectation that can be met.');
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

/** The query string as it was sent, without the question mark. */
export function rawQuery({ originalUrl }: Pick<Request, 'originalUrl'>): string {
  const mark = originalUrl.indexOf('?');
  return mark < 0 ? '' : originalUrl.slice(mark + 1);
}

function isPercentEncodedUtf8(text: string): boolean {
  try {
    decodeURIComponent(text);
    return true;
  } catch {
    // URIError is the only way in which decodeURIComponent says no.
    return false;
  }
}
