/** The OpenAPI document, its examples, and the page that shows it. */
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { DEFAULT_PRICE_BOOK } from '@meterline/catalog';
import { createOpenApiDocument as createCollectorDocument } from '@meterline/collector';
import { createApp, createOpenApiDocument } from '@meterline/query';
import type { Alert } from '@meterline/service/alerts';
import { oneServer, registerPriceBook } from '@meterline/warehouse';
import { createConfig, lintFromString } from '@redocly/openapi-core';
import { z } from 'zod';
import { ALERT_SETTINGS } from '../harness/alerts.js';
import { bearer, NOW, PAGE_POLICY, startApi, type TestApi } from '../harness/api.js';
import { event } from '../harness/events.js';
import { examplesOf, operationsOf } from './document-examples.js';

const document = createOpenApiDocument();
const operations = operationsOf(document);
const examples = examplesOf(document);

let api: TestApi;
let key: string;
let alert: Alert;

/** What the examples show: a key, events, an alert, and where tokens come from. */
beforeAll(async () => {
  const protectedResource = { issuer: 'https://auth.example.com/', publicUrl: 'https://billing.example.com' };
  api = await startApi({ protectedResource });
  key = await api.key('acme');
  const { warehouse, alerts } = api.dependencies;
  await registerPriceBook(oneServer(warehouse), DEFAULT_PRICE_BOOK);
  const expiresAt = new Date('2026-11-15T00:00:00Z');
  const clientId = 'client_1f9a3c0b5d7e24680a';
  const { keyId } = await api.keys.create({ account: 'acme', role: 'member', clientId, expiresAt }, NOW);
  await api.keys.noteUse(keyId, new Date('2025-11-15T11:00:00Z'));
  const agent = { resourceType: 'agent', resourceName: 'support', at: '2025-10-02T09:00:00Z' } as const;
  const compute = { ...agent, billingDimension: 'agent_compute_runtime_gbs' } as const;
  await api.seed([
    event({ ...compute, at: '2025-10-01T10:30:00Z', workspace: 'production', usage: '1000000', cost: '11.5' }),
    event({ ...compute, workspace: 'staging', usage: '200000', cost: '2.3' }),
    event({
      ...{ ...agent, billingDimension: 'agent_async_requests_count', workspace: 'staging', resourceName: 'crawler' },
      ...{ eventId: '01999f3c-2a00-7c31-9d5e-0b6f1e2d3c4b', resourceUuid: '', usage: '250000', cost: '0.05' },
    }),
  ]);
  alert = await alerts.create('acme', { ...ALERT_SETTINGS, filters: { workspace: ['production'] } }, NOW);
});
afterAll(() => api.stop());

it('the document is served as it is built, without credentials', async () => {
  const { status, body, headers } = await api.request('/openapi.json');
  expect([status, headers.get('content-type'), headers.get('cache-control')]).toEqual([
    200,
    'application/json; charset=utf-8',
    'public, max-age=300',
  ]);
  expect(body).toEqual(JSON.parse(JSON.stringify(document)));
});

it.each([
  ['query', document],
  ['collector', createCollectorDocument()],
])('the document of %s has no fault that a linter finds', async (_service, document) => {
  // Every status but one of health checks is "default": generated clients cannot compile both it and a range.
  const rules = { 'operation-4xx-response': 'off' } as const;
  const config = await createConfig({ extends: ['recommended-strict'], rules });
  const problems = await lintFromString({ source: JSON.stringify(document), absoluteRef: 'openapi.json', config });
  expect(problems.map(({ ruleId, message, location }) => `${ruleId}: ${message} at ${location[0]?.pointer}`)).toEqual(
    [],
  );
});

it('the document has no range of statuses, and what clients get wrong for each operation of the API', () => {
  for (const { path, operation } of operations) {
    const statuses = Object.keys(operation.responses);
    expect(statuses.filter((status) => /X/.test(status))).toEqual([]);
    if (path.startsWith('/v0/')) expect(statuses).toEqual(expect.arrayContaining(['400', '401', '403']));
  }
});

it('the document marks what the platform’s API does not have', () => {
  const extensions = operations.flatMap(({ operation }) => [
    ...(operation['x-extension'] ? [operation.operationId] : []),
    ...operation.parameters.flatMap((parameter) => (parameter['x-extension'] ? [parameter.name] : [])),
  ]);
  expect([...new Set(extensions)].join(' ')).toBe(
    'withoutResourceUuid excludeWorkspace excludeResourceType excludeResourceName excludeResourceUuid ' +
      'excludeBillingDimension excludeWithoutResourceUuid getMetrics account excludeAccount listEvents ' +
      'includeVoided listBillingDimensions listAlerts createAlert getAlert changeAlert deleteAlert testAlert ' +
      'listDeliveries redeliver',
  );
});

it('the document describes every route of the API, and no other', () => {
  const stack = z.array(z.object({ route: z.object({ path: z.string() }).optional() }));
  const routes = stack.parse(createApp(api.dependencies).router.stack).flatMap(({ route }) => route?.path ?? []);
  const described = routes.filter((path) => /^\/(v0\/|healthz$|readyz$|\.well-known\/)/.test(path));
  expect(described.map((path) => path.replace(/:(\w+)/g, '{$1}')).sort()).toEqual(Object.keys(document.paths).sort());
});

describe('the examples', () => {
  /** The digits of keys and of their ids are random. */
  const withoutDigits = (value: unknown) =>
    JSON.stringify(value)?.replace(/[0-9a-f]{64}|[0-9a-f]{32}|[0-9a-f]{24}|(?<=whsec_)[\w+/=]{44}/g, '…');

  /** With the alert that there is, and the delivery that its test, an example before, has made. */
  async function withIds(target: string): Promise<string> {
    const { alerts } = api.dependencies;
    const [delivery] = await alerts.deliveries.listOf('acme', alert.id, NOW);
    return target.replace(/alr_[0-9a-f]+/, alert.id).replace(/dlv_[0-9a-f]+/, delivery?.id ?? '');
  }

  it.each(examples.filter(({ response }) => response !== undefined))(
    'the request of $name gets exactly its response',
    async ({ target, method, headers, body: sent, response }) => {
      const content = sent === undefined ? {} : { body: sent };
      const { status, body } = await api.request(await withIds(target), {
        method,
        headers: { ...headers, ...bearer(key).headers },
        ...content,
      });
      expect([status < 300, withoutDigits(body)]).toEqual([true, withoutDigits(response)]);
    },
  );

  it('every operation has an example', () => {
    const withExample = new Set(examples.map(({ name }) => name.split(' ')[0]));
    expect(operations.map(({ operation }) => operation.operationId).filter((id) => !withExample.has(id))).toEqual([]);
  });

  it.each([
    ['BadRequest', '/v0/accounts/acme/metrics?startTime=yesterday&endTime=2025-10-02T00:00:00Z', undefined],
    ['Unauthorized', '/v0/accounts', 'mlk_unknown'],
    ['Forbidden', '/v0/accounts/other/metrics/enums/group-by', undefined],
    ['NotFound', '/v0/service_accounts/a/api_keys/b', undefined],
  ])('the example of %s is what such a request gets', async (name, target, credential) => {
    const method = target.startsWith('/v0/service_accounts') ? 'DELETE' : 'GET';
    const { body, headers } = await api.request(target, { method, ...bearer(credential ?? key) });
    const [example] = Object.values(document.components.responses[name]?.content?.['application/json'].examples ?? {});
    expect(body).toEqual({
      ...z.record(z.string(), z.unknown()).parse(example?.value),
      requestId: headers.get('x-request-id'),
    });
  });
});

it('the page and all that it loads come from this service, under a policy that allows nothing inline', async () => {
  const { status, headers, text } = await api.request('/docs');
  expect([status, headers.get('content-type')]).toEqual([200, 'text/html; charset=utf-8']);
  expect(headers.get('content-security-policy')).toBe(PAGE_POLICY);
  const addresses = [...text.matchAll(/(?:href|src)="([^"]+)"/g)].map(([, address]) => address);
  expect(addresses).toEqual([
    '/favicon.ico',
    '/docs/swagger-ui.css',
    '/docs/swagger-ui-bundle.js',
    '/docs/start.js',
    '/openapi.json',
  ]);
  for (const address of addresses) expect([address, (await fetch(api.url + address)).status]).toEqual([address, 200]);
});
