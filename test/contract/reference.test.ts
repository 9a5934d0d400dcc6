/** The OpenAPI document and the page that is made from it. */
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { type OpenApiDocument, requestTarget } from '@meterline/api';
import { createOpenApiDocument, createRoutes } from '@meterline/query';
import { createConfig, lintFromString } from '@redocly/openapi-core';
import { z } from 'zod';
import { PAGE_FOLDER } from '../browser/page-folder.js';
import { PROTECTED_RESOURCE, seedExamples } from './example-usage.js';
import { bearer, startApi, type TestApi } from './fixture.js';

let api: TestApi;
let key: string;
let document: OpenApiDocument;

beforeAll(async () => {
  api = await startApi({ pageFolder: PAGE_FOLDER, protectedResource: PROTECTED_RESOURCE });
  key = await api.key('acme');
  document = createOpenApiDocument();
  await seedExamples(api);
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
    // Of health checks every status but one is "default": generated clients cannot compile both it and a range.
    const rules = { 'operation-4xx-response': 'off' } as const;
    const config = await createConfig({ extends: ['recommended-strict'], rules });
    const problems = await lintFromString({ source: JSON.stringify(document), absoluteRef: 'openapi.json', config });
    expect(problems.map(({ ruleId, message, location }) => `${ruleId}: ${message} at ${location[0]?.pointer}`)).toEqual(
      [],
    );
  });

  it('has no range of statuses, and what clients get wrong for each operation of the API', () => {
    for (const { path, operation } of operations) {
      const statuses = Object.keys(operation.responses);
      expect(statuses.filter((status) => /X/.test(status))).toEqual([]);
      if (path.startsWith('/v0/')) expect(statuses).toEqual(expect.arrayContaining(['400', '401', '403']));
    }
  });

  it('marks what the platform’s API does not have', () => {
    const extensions = operations.flatMap(({ operation }) => [
      ...(operation['x-extension'] ? [operation.operationId] : []),
      ...operation.parameters.flatMap((parameter) => (parameter['x-extension'] ? [parameter.name] : [])),
    ]);
    expect([...new Set(extensions)]).toEqual([
      'withoutResourceUuid',
      'excludeWorkspace',
      'excludeResourceType',
      'excludeResourceName',
      'excludeResourceUuid',
      'excludeBillingDimension',
      'excludeWithoutResourceUuid',
      'listEvents',
      'includeVoided',
      'listBillingDimensions',
    ]);
  });

  it('describes every route of the API, and no other', () => {
    const stack = z.array(z.object({ route: z.object({ path: z.string() }).optional() }));
    const routes = stack.parse(createRoutes(api.dependencies).router.stack).flatMap(({ route }) => route?.path ?? []);
    const described = routes.filter((path) => /^\/(v0\/|healthz$|readyz$|\.well-known\/)/.test(path));
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
      sent: operation.requestBody?.content['application/json'].examples?.[name]?.value,
      version: operation.parameters.find((parameter) => parameter.in === 'header')?.examples?.[name]?.value,
      answer: value,
    }));
  });

  /** The digits of keys and of their ids are random. */
  const withoutDigits = (value: unknown) => JSON.stringify(value).replace(/[0-9a-f]{64}|[0-9a-f]{24}/g, '…');

  it.each(examples)('$name is answered exactly so', async ({ target, method, version, sent, answer }) => {
    const { headers } = bearer(key);
    const pinned = version === undefined ? headers : { ...headers, 'Svc-Version': String(version) };
    const content = sent === undefined ? {} : { body: JSON.stringify(sent) };
    const { status, body } = await api.request(target, { method: method.toUpperCase(), headers: pinned, ...content });
    expect([status, withoutDigits(body)]).toEqual([200, withoutDigits(answer)]);
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

  it('may load and run only files of the web page, and ask only this service', async () => {
    expect(policy).toBe(
      "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; font-src 'self'; connect-src 'self'; " +
        "base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    );
    expect(page).not.toMatch(/<script(?! type="module" src=)|<style|<img|<iframe|\sstyle=|\son\w+=|url\(|@import/);
    const addresses = [...page.matchAll(/(?:href|src)="([^"#][^"]*)"/g)].map(([, address = '']) => address);
    expect(addresses.map((address) => address.replace(/-[\w-]{8}\./, '.'))).toEqual([
      '/assets/inter-latin-wght-normal.woff2',
      '/assets/reference.css',
      '/assets/reference.js',
      '/',
      '/openapi.json',
    ]);
    for (const address of addresses) expect((await fetch(api.url + address)).status).toBe(200);
  });

  it('can be read where the web page is not built', async () => {
    const alone = await startApi({ warehouse: api.dependencies.warehouse });
    const { status, text } = await alone.request('/docs');
    await alone.stop();
    expect(status).toBe(200);
    expect(text).not.toMatch(/<script|<link|href="\/"/);
    expect(text).toContain('id="getAccountMetrics"');
  });

  it('leads to every operation and every schema, and no link leads nowhere', () => {
    const ids = new Set([...page.matchAll(/ id="([^"]+)"/g)].map(([, id]) => id));
    for (const { operation } of operations) expect(ids).toContain(operation.operationId);
    for (const name of Object.keys(document.components.schemas)) expect(ids).toContain(`schema-${name}`);
    const links = [...page.matchAll(/href="#([^"]+)"/g)].map(([, id]) => id);
    expect(links.filter((id) => !ids.has(id))).toEqual([]);
  });

  it('shows each parameter, each example in three languages, and a form for each operation', () => {
    for (const { path, method, operation } of operations) {
      const start = page.indexOf(`<section class="operation" id="${operation.operationId}"`);
      const section = page.slice(start, page.indexOf('</section>', start));
      for (const { name } of operation.parameters) expect(section).toContain(`<td>${name}`);
      for (const { name } of operation.parameters) expect(section).toContain(`data-name="${name}"`);
      for (const language of ['curl', 'TypeScript', 'Python']) expect(section).toContain(`data-language="${language}"`);
      expect(section).toContain(`<form data-method="${method.toUpperCase()}" data-path="${path}"`);
      expect(section.includes('<textarea id="try-createApiKey-body"')).toBe(operation.requestBody !== undefined);
    }
    expect(page).toContain(
      '/v0/accounts/acme/metrics?startTime=2025-10-01T00:00:00Z&amp;endTime=2025-10-03T00:00:00Z&amp;resolution=daily&amp;groupBy=workspace,billing_dimension&amp;billingDimension=agent_compute_runtime_gbs',
    );
  });

  it('fills in nothing where a request would change something', () => {
    const start = page.indexOf('id="try-revokeApiKey-clientId"');
    expect(page.slice(start, start + 120)).toContain('value=""');
    expect(page).toContain('id="try-getAccountMetrics-accountId" spellcheck="false" autocomplete="off" value="acme"');
  });
});
