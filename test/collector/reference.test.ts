/** What the collector says of itself. */
import { afterAll, beforeAll, expect, it } from '@jest/globals';
import { exampleRequests } from '@meterline/api';
import { createOpenApiDocument } from '@meterline/collector';
import { type CollectorSite, startCollectorSite } from './fixture.js';

let site: CollectorSite;
beforeAll(async () => {
  site = await startCollectorSite({ ADMIN_PORT: '0' });
});
afterAll(() => site.stop());

const get = (path: string) => fetch(site.service.url + path);

it('the examples of its document are true', async () => {
  const key = await site.key('acme', 'emitter');
  for (const [path, methods] of Object.entries(createOpenApiDocument().paths)) {
    for (const [method, operation] of Object.entries(methods)) {
      for (const example of exampleRequests({ path, method, operation })) {
        const answer = await fetch(site.service.url + example.target, {
          method: example.method,
          headers: { ...example.headers, ...(example.needsCredential && { authorization: `Bearer ${key}` }) },
          ...(example.body !== undefined && { body: JSON.stringify(example.body) }),
        });
        expect(await answer.json()).toEqual(example.answer);
      }
    }
  }
});

it('has its document, and a page of it', async () => {
  expect(await (await get('/openapi.json')).json()).toEqual(createOpenApiDocument());
  expect(await (await get('/docs')).text()).toContain('Send events');
});

it('counts events and writes on the admin port', async () => {
  const { adminPort } = await site.service.entry(({ event }) => event === 'started');
  const text = await (await fetch(`http://127.0.0.1:${adminPort}/metrics`)).text();
  expect(text).toMatch(/^meterline_collected_events_total(\{[^}]*\})? 1$/m);
  expect(text).toMatch(/^meterline_collector_refused_events_total\{[^}]*reason="invalid_usage"[^}]*\} 1$/m);
  expect(text).toContain('meterline_http_request_duration_seconds');
});
