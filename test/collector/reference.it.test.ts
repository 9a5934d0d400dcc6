/** What the collector says of itself. */
import { afterAll, beforeAll, expect, it } from '@jest/globals';
import { METADATA_PATH } from '@meterline/api';
import { createOpenApiDocument } from '@meterline/collector';
import { examplesOf } from '../contract/document-examples.js';
import { type CollectorFixture, event, startCollectorFixture } from '../harness/collector.js';
import { adminUrl, scrape } from '../observability/scrape.js';

const document = createOpenApiDocument();

let site: CollectorFixture;
beforeAll(async () => {
  site = await startCollectorFixture({
    ADMIN_PORT: '0',
    // Nobody sends a token here.
    AUTH_JWKS_URL: 'http://127.0.0.1:1/jwks.json',
    AUTH_ISSUER: 'https://auth.example.com/',
    AUTH_AUDIENCE: 'meterline',
    PUBLIC_URL: 'https://billing.example.com',
  });
});
afterAll(() => site.close());

const get = (path: string) => fetch(site.service.url + path);

it('the document of the collector is served, and has a page that leads nowhere else', async () => {
  expect(await (await get('/openapi.json')).json()).toEqual(document);
  const page = await (await get('/docs')).text();
  for (const [, address] of page.matchAll(/(?:href|src)="([^"]+)"/g))
    expect([address, (await get(`${address}`)).status]).toEqual([address, 200]);
});

it('the document of the collector has every path that is served', async () => {
  const served = ['/v0/accounts/{accountId}/events', METADATA_PATH, '/healthz', '/readyz'];
  expect(Object.keys(document.paths)).toEqual(served);
  for (const path of served) expect([path, (await get(path)).status]).not.toEqual([path, 404]);
});

it.each(examplesOf(document))('the request of $name gets exactly its response', async (example) => {
  const { method, target, headers, needsCredential, body, response } = example;
  const credential = needsCredential && { authorization: `Bearer ${await site.key('acme', 'emitter')}` };
  const content = body === undefined ? {} : { body };
  const answer = await fetch(site.service.url + target, {
    method,
    headers: { ...headers, ...credential },
    ...content,
  });
  expect(await answer.json()).toEqual(response);
});

it('the collector counts the events that it accepts, on the admin port', async () => {
  const admin = await adminUrl(site.service);
  const accepted = async () => (await scrape(admin)).value('meterline_collected_events_total') ?? 0;
  const before = await accepted();
  const { account, key } = await site.account();
  expect((await site.send(account, key, JSON.stringify([event(), event(), event({ usage: -1 })]))).status).toBe(202);
  expect((await accepted()) - before).toBe(2);
});
