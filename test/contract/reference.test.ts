/** The OpenAPI document and the page that is made from it. */
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { createApp, createOpenApiDocument, type OpenApiDocument, requestTarget } from '@meterline/query';
import { createConfig, lintFromString } from '@redocly/openapi-core';
import { z } from 'zod';
import { bearer, event, startApi, type TestApi } from './fixture.js';

let api: TestApi;
let key: string;
let document: OpenApiDocument;

beforeAll(async () => {
  api = await startApi();
  key = await api.key('acme');
  document = createOpenApiDocument();
  const agent = { resourceType: 'agent', resourceName: 'support' } as const;
  await api.seed([
    event({
      ...agent,
      workspace: 'production',
      billingDimension: 'agent_compute_runtime_gbs',
      usage: '1000000',
      cost: '11.5',
    }),
    event({
      ...agent,
      workspace: 'staging',
      billingDimension: 'agent_async_requests_count',
      usage: '250000',
      cost: '0.05',
      at: '2025-10-02T09:00:00Z',
    }),
  ]);
});
afterAll(() => api.stop());

const operations = Object.entries(createOpenApiDocument().paths).flatMap(([path, methods]) =>
  Object.entries(methods).map(([method, operation]) => ({ path, method, operation })),
);

describe('the document', () => {
  it('is served as it is built, without credentials', async () => {
    const { status, body, headers } = await api.request('/openapi.json');
    expect([status, headers.get('content-type'), headers.get('cache-control')]).toEqual([
      200,
      'application/json; charset=utf-8',
      'public, max-age=300',
    ]);
    expect(body).toEqual(JSON.parse(JSON.stringify(document)));
  });

  it('has no fault that a linter finds', async () => {
    const config = await createConfig({ extends: ['recommended-strict'] });
    const problems = await lintFromString({ source: JSON.stringify(document), absoluteRef: 'openapi.json', config });
    expect(problems.map(({ ruleId, message, location }) => `${ruleId}: ${message} at ${location[0]?.pointer}`)).toEqual(
      [],
    );
  });

  it('describes every route of the API, and no other', () => {
    const stack = z.array(z.object({ route: z.object({ path: z.string() }).optional() }));
    const routes = stack.parse(createApp(api.dependencies).router.stack).flatMap(({ route }) => route?.path ?? []);
    const described = routes.filter((path) => /^\/(v0\/|healthz$|readyz$)/.test(path));
    expect(described.map((path) => path.replace(/:(\w+)/g, '{$1}')).sort()).toEqual(Object.keys(document.paths).sort());
  });
});

describe('the examples', () => {
  const examples = operations.flatMap(({ path, method, operation }) => {
    const answer = operation.responses['200'];
    if (!answer || '$ref' in answer) return [];
    return Object.entries(answer.content?.['application/json'].examples ?? {}).map(([name, { value }]) => ({
      name: `${operation.operationId} ${name}`,
      target: requestTarget(path, operation, name),
      method,
      version: operation.parameters.find((parameter) => parameter.in === 'header')?.examples?.[name]?.value,
      answer: value,
    }));
  });

  it.each(examples)('$name is answered exactly so', async ({ target, method, version, answer }) => {
    const { headers } = bearer(key);
    const pinned = version === undefined ? headers : { ...headers, 'Svc-Version': String(version) };
    const { status, body } = await api.request(target, { method: method.toUpperCase(), headers: pinned });
    expect([status, body]).toEqual([200, answer]);
  });

  it('are of every operation that answers with a body', () => {
    const ofOperations = new Set(examples.map(({ name }) => name.split(' ')[0]));
    expect(operations.map(({ operation }) => operation.operationId).filter((id) => !ofOperations.has(id))).toEqual([
      'revokeApiKey',
    ]);
  });

  it.each([
    ['BadRequest', '/v0/accounts/acme/metrics?startTime=yesterday&endTime=2025-10-02T00:00:00Z', undefined],
    ['Unauthorized', '/v0/accounts', 'mlk_unknown'],
    ['Forbidden', '/v0/accounts/other/metrics/enums/group-by', undefined],
    ['NotFound', '/v0/service_accounts/a/api_keys/b', undefined],
  ])('%s is what such a request gets', async (name, target, credential) => {
    const method = target.startsWith('/v0/service_accounts') ? 'DELETE' : 'GET';
    const { body, headers } = await api.request(target, { method, ...bearer(credential ?? key) });
    const [example] = Object.values(document.components.responses[name]?.content?.['application/json'].examples ?? {});
    expect(body).toEqual({
      ...z.record(z.string(), z.unknown()).parse(example?.value),
      requestId: headers.get('x-request-id'),
    });
  });
});

describe('the page', () => {
  let page: string;
  let policy: string;
  beforeAll(async () => {
    const { status, headers, text } = await api.request('/docs');
    expect([status, headers.get('content-type')]).toEqual([200, 'text/html; charset=utf-8']);
    page = text;
    policy = headers.get('content-security-policy') ?? '';
  });

  it('may load nothing and run nothing but its own style', () => {
    expect(policy).toMatch(
      /^default-src 'none'; style-src 'sha256-[\w+/]{43}='; base-uri 'none'; form-action 'none'; frame-ancestors 'none'$/,
    );
    expect(page).not.toMatch(/<script|<img|<link|<iframe|\sstyle=|\son\w+=|url\(|@import/);
    expect(
      [...page.matchAll(/(?:href|src)="([^"]*)"/g)]
        .map(([, address]) => address)
        .filter((address) => !/^(#|\/openapi\.json$)/.test(address ?? '')),
    ).toEqual([]);
  });

  it('leads to every operation and every schema, and no link leads nowhere', () => {
    const ids = new Set([...page.matchAll(/ id="([^"]+)"/g)].map(([, id]) => id));
    for (const { operation } of operations) expect(ids).toContain(operation.operationId);
    for (const name of Object.keys(document.components.schemas)) expect(ids).toContain(`schema-${name}`);
    const links = [...page.matchAll(/href="#([^"]+)"/g)].map(([, id]) => id);
    expect(links.filter((id) => !ids.has(id))).toEqual([]);
  });

  it('shows each parameter and each example', () => {
    for (const { operation } of operations) {
      for (const { name } of operation.parameters) expect(page).toContain(`<td>${name}`);
    }
    expect(page).toContain(
      '/v0/accounts/acme/metrics?startTime=2025-10-01T00:00:00Z&amp;endTime=2025-10-03T00:00:00Z&amp;resolution=daily&amp;groupBy=workspace,billing_dimension',
    );
  });
});
