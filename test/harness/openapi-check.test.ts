import { describe, expect, it } from '@jest/globals';
import { type CheckedAnswer, checkAnswer } from './openapi-check.js';

const HEADERS = { 'content-type': 'application/json; charset=utf-8' };
const ENTRY = { summary: { cost: 1.5 }, timeseries: [{ timestamp: '2025-10-01T00:00:00Z', cost: 1.5 }] };
const METRICS = {
  startTime: '2025-10-01T00:00:00Z',
  endTime: '2025-10-02T00:00:00Z',
  resolution: 'daily',
  summary: { totalCost: 1.5 },
  data: [ENTRY],
  meta: { hasMore: false, nextCursor: '' },
};
/** Of metrics. */
const TAGGED = { headers: { etag: 'W/"1"' } };
const ERROR = { code: 403, error: 'forbidden', message: 'Access denied', requestId: 'r' };

function check(
  status: number,
  body: unknown,
  { headers = {}, ...rest }: Partial<CheckedAnswer> | { headers?: Record<string, string> } = {},
) {
  const text = body === undefined ? '' : JSON.stringify(body);
  const answer = { method: 'GET', path: '/v0/accounts/acme/metrics', status, text, body, ...rest };
  return () =>
    checkAnswer({ ...answer, headers: new Headers({ ...HEADERS, ...Object.fromEntries(new Headers(headers)) }) });
}

describe('an answer that the document describes passes', () => {
  it.each([
    ['metrics', check(200, METRICS, TAGGED)],
    ['metrics that are the same', check(304, undefined, TAGGED)],
    ['an error', check(403, ERROR)],
    ['an error with its header', check(401, { ...ERROR, code: 401 }, { headers: { 'www-authenticate': 'Bearer' } })],
    ['a HEAD', check(200, undefined, { ...TAGGED, method: 'HEAD' })],
    ['an unknown route', check(404, { ...ERROR, code: 404 }, { path: '/nope' })],
    ['a revocation', check(200, undefined, { method: 'DELETE', path: '/v0/service_accounts/a/api_keys/b' })],
  ])('%s', (_name, passes) => expect(passes).not.toThrow());
});

describe('an answer that deviates fails', () => {
  const { meta: _left, ...withoutMeta } = METRICS;
  it.each([
    ['an unknown member', check(200, { ...METRICS, extra: 1 }, TAGGED), /additional properties/],
    [
      'an unknown member deep inside',
      check(200, { ...METRICS, data: [{ ...ENTRY, label: 'x' }] }, TAGGED),
      /additional properties/,
    ],
    ['a member that is missing', check(200, withoutMeta, TAGGED), /required property 'meta'/],
    ['money as text', check(200, { ...METRICS, summary: { totalCost: '1.5' } }, TAGGED), /totalCost must be number/],
    [
      'a time in another zone',
      check(200, { ...METRICS, startTime: '2025-10-01T00:00:00+02:00' }, TAGGED),
      /must match format/,
    ],
    ['a resolution that there is not', check(200, { ...METRICS, resolution: 'yearly' }, TAGGED), /allowed values/],
    ['a status that there is not', check(204, undefined), /not in the document/],
    ['an error of another shape', check(400, { message: 'no' }), /required property 'code'/],
    ['an error that is no JSON', check(500, undefined, { headers: { 'content-type': 'text/html' } }), /not JSON/],
    ['a tag that is missing', check(200, METRICS), /without the header ETag/],
    ['a challenge that is missing', check(401, { ...ERROR, code: 401 }), /without the header WWW-Authenticate/],
    [
      'a body where there is none',
      check(200, {}, { method: 'DELETE', path: '/v0/service_accounts/a/api_keys/b' }),
      /with a body/,
    ],
    ['a route that is not described', check(200, {}, { path: '/v0/secret' }), /not in the document/],
  ])('%s', (_name, fails, reason) => expect(fails).toThrow(reason));
});
