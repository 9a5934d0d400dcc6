import { expect, it } from '@jest/globals';
import { type Given, requestOf } from './request.js';

it('puts each parameter where it belongs, and leaves out what was not given', () => {
  const parameters: Given[] = [
    { name: 'accountId', place: 'path', isEach: false, values: ['acme & $& söhne/1'] },
    { name: 'groupBy', place: 'query', isEach: false, values: ['workspace', 'resource_type'] },
    { name: 'workspace', place: 'query', isEach: true, values: ['a, b', 'c+d'] },
    { name: 'cursor', place: 'query', isEach: false, values: [] },
    { name: 'Svc-Version', place: 'header', isEach: false, values: ['2026-04-28'] },
  ];
  expect(requestOf('/v0/accounts/{accountId}/metrics', parameters)).toEqual({
    target:
      '/v0/accounts/acme%20%26%20%24%26%20s%C3%B6hne%2F1/metrics?groupBy=workspace%2Cresource_type&workspace=a%2C+b&workspace=c%2Bd',
    headers: { 'Svc-Version': '2026-04-28' },
  });
  expect(requestOf('/healthz', [])).toEqual({ target: '/healthz', headers: {} });
});
