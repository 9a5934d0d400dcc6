/** What the collector says of itself. */
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { exampleRequests, METADATA_PATH } from '@meterline/api';
import { createOpenApiDocument } from '@meterline/collector';
import { createConfig, lintFromString } from '@redocly/openapi-core';
import { adminUrl, scrape } from '../observability/scrape.js';
import { type CollectorSite, event, startCollectorSite } from './fixture.js';

const document = createOpenApiDocument();
const places = Object.entries(document.paths).flatMap(([path, methods]) =>
  Object.entries(methods).map(([method, operation]) => ({ path, method, operation })),
);

let site: CollectorSite;
beforeAll(async () => {
  site = await startCollectorSite({
    ADMIN_PORT: '0',
    // Nobody sends a token here.
    AUTH_JWKS_URL: 'http://127.0.0.1:1/jwks.json',
    AUTH_ISSUER: 'https://auth.example.com/',
    AUTH_AUDIENCE: 'meterline',
    PUBLIC_URL: 'https://billing.example.com',
  });
});
afterAll(() => site.stop());

const get = (path: string) => fetch(site.service.url + path);

describe('its document', () => {
  it('is served, and has a page', async () => {
    expect(await (await get('/openapi.json')).json()).toEqual(document);
    expect(await (await get('/docs')).text()).toContain('Send events');
  });

  it('has no fault that a linter finds', async () => {
    const rules = { 'operation-4xx-response': 'off' } as const;
    const config = await createConfig({ extends: ['recommended-strict'], rules });
    const problems = await lintFromString({ source: JSON.stringify(document), absoluteRef: 'openapi.json', config });
    expect(problems.map(({ ruleId, message, location }) => `${ruleId}: ${message} at ${location[0]?.pointer}`)).toEqual(
      [],
    );
  });

  it('has every path that is served', async () => {
    const served = ['/v0/accounts/{accountId}/events', METADATA_PATH, '/healthz', '/readyz'];
    expect(Object.keys(document.paths)).toEqual(served);
    for (const path of served) expect([path, (await get(path)).status]).not.toEqual([path, 404]);
  });

  it.each(places.flatMap((place) => exampleRequests(place).map((example) => [example.summary, example] as const)))(
    'has a true example: %s',
    async (_summary, example) => {
      const answer = await fetch(site.service.url + example.target, {
        method: example.method,
        headers: {
          ...example.headers,
          ...(example.needsCredential && { authorization: `Bearer ${await site.key('acme', 'emitter')}` }),
        },
        ...(example.body !== undefined && { body: JSON.stringify(example.body) }),
      });
      expect(await answer.json()).toEqual(example.answer);
    },
  );
});

it('counts events, writes and what is under way on the admin port', async () => {
  const admin = await adminUrl(site.service);
  const seen = async () => {
    const { names, value } = await scrape(admin);
    const accepted = value('meterline_collected_events_total') ?? 0;
    return { names, accepted };
  };
  const before = await seen();
  const { account, key } = await site.account();
  expect((await site.send(account, key, JSON.stringify([event(), event(), event({ usage: -1 })]))).status).toBe(202);
  const after = await seen();
  expect(after.accepted - before.accepted).toBe(2);
  for (const name of ['refused_events_total', 'write_duration_seconds_count', 'bytes_under_way']) {
    expect(after.names).toContain(`meterline_collector_${name}`);
  }
  expect(after.names).toContain('meterline_http_request_duration_seconds_count');
});
