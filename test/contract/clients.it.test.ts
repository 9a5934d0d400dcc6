/** The basis of clients: the OpenAPI document with its examples, the page that shows it, and the TypeScript client. */
import { execFile } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { gzipSync } from 'node:zlib';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { DEFAULT_PRICE_BOOK, sumDecimals } from '@meterline/catalog';
import { MeterlineClient, type MetricsResponse } from '@meterline/client';
import { createOpenApiDocument as createCollectorDocument } from '@meterline/collector';
import { createApp, createOpenApiDocument } from '@meterline/query';
import type { Alert } from '@meterline/service/alerts';
import { registerPriceBook } from '@meterline/warehouse';
import { createConfig, lintFromString } from '@redocly/openapi-core';
import { z } from 'zod';
import { ALERT_SETTINGS } from '../harness/alerts.js';
import { bearer, DAY, NOW, PAGE_POLICY, startApi, type TestApi } from '../harness/api.js';
import { event } from '../harness/events.js';
import { testDatabase } from '../harness/test-database.js';
import { examplesOf, operationsOf } from './document-examples.js';

const document = createOpenApiDocument();
const operations = operationsOf(document);
const examples = examplesOf(document);

const database = testDatabase();
let api: TestApi;
let key: string;
let provisioner: string;
let alert: Alert;

/** Creates the data of the examples: a key, events, an alert, a saved view, and the issuer of tokens. */
beforeAll(async () => {
  const protectedResource = { issuer: 'https://auth.example.com/', publicUrl: 'https://billing.example.com' };
  api = await startApi({ protectedResource, warehouse: database.warehouse });
  key = await api.key('acme');
  const { alerts } = api.dependencies;
  await registerPriceBook(database.shards, DEFAULT_PRICE_BOOK);
  const expiresAt = new Date('2026-11-15T00:00:00Z');
  const clientId = 'client_1f9a3c0b5d7e24680a';
  const { keyId } = await api.keys.create({ account: 'acme', role: 'member', clientId, expiresAt }, NOW);
  provisioner = await api.key(undefined, 'provisioner');
  await api.keys.create({ account: 'globex', role: 'emitter', clientId: 'runtime' }, NOW);
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
  await api.dependencies.views.save(
    'acme',
    'Agents this month',
    'period=month&group=billing_dimension&type=agent',
    NOW,
  );
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
])('the document of %s passes the linter', async (_service, document) => {
  // All errors but those of health checks are "default": generated clients do not compile with both a default and a range.
  const rules = { 'operation-4xx-response': 'off' } as const;
  const config = await createConfig({ extends: ['recommended-strict'], rules });
  const problems = await lintFromString({ source: JSON.stringify(document), absoluteRef: 'openapi.json', config });
  expect(problems.map(({ ruleId, message, location }) => `${ruleId}: ${message} at ${location[0]?.pointer}`)).toEqual(
    [],
  );
});

it('the document has no range of statuses, and the client errors of each operation of the API', () => {
  for (const { path, operation } of operations) {
    const statuses = Object.keys(operation.responses);
    expect(statuses.filter((status) => /X/.test(status))).toEqual([]);
    if (path.startsWith('/v0/')) expect(statuses).toEqual(expect.arrayContaining(['400', '401', '403']));
  }
});

it('the document marks the extensions of the API of the platform', () => {
  const extensions = operations.flatMap(({ operation }) => [
    ...(operation['x-extension'] ? [operation.operationId] : []),
    ...operation.parameters.flatMap((parameter) => (parameter['x-extension'] ? [parameter.name] : [])),
  ]);
  expect([...new Set(extensions)].join(' ')).toBe(
    'withoutResourceUuid excludeWorkspace excludeResourceType excludeResourceName excludeResourceUuid ' +
      'excludeBillingDimension excludeWithoutResourceUuid getMetrics account excludeAccount listEvents ' +
      'includeVoided orderBy order listBillingDimensions nameAccount listAccountApiKeys listAlerts createAlert getAlert changeAlert deleteAlert testAlert ' +
      'listDeliveries redeliver listViews getView saveView deleteView',
  );
});

it('the document describes exactly the routes of the API', () => {
  const stack = z.array(z.object({ route: z.object({ path: z.string() }).optional() }));
  const routes = stack.parse(createApp(api.dependencies).router.stack).flatMap(({ route }) => route?.path ?? []);
  const described = routes.filter((path) => /^\/(v0\/|healthz$|readyz$|\.well-known\/)/.test(path));
  expect(described.map((path) => path.replace(/:(\w+)/g, '{$1}')).sort()).toEqual(Object.keys(document.paths).sort());
});

describe('the examples', () => {
  const OF_PROVISIONERS = /^(nameAccount|listAccountApiKeys) /;

  /** Removes the digits of keys and ids, which are random. */
  const withoutDigits = (value: unknown) =>
    JSON.stringify(value)?.replace(/[0-9a-f]{64}|[0-9a-f]{32}|[0-9a-f]{24}|(?<=whsec_)[\w+/=]{44}/g, '…');

  /** Inserts the id of the alert, and of the delivery that an earlier example created by testing the alert. */
  async function withIds(target: string): Promise<string> {
    const { alerts } = api.dependencies;
    const [delivery] = await alerts.deliveries.listOf('acme', alert.id, NOW);
    return target.replace(/alr_[0-9a-f]+/, alert.id).replace(/dlv_[0-9a-f]+/, delivery?.id ?? '');
  }

  it.each(examples.filter(({ response }) => response !== undefined))(
    'the example request $name gets exactly the example response',
    async ({ name, target, method, headers, body: sent, response }) => {
      const content = sent === undefined ? {} : { body: sent };
      const { status, body } = await api.request(await withIds(target), {
        method,
        headers: { ...headers, ...bearer(OF_PROVISIONERS.test(name) ? provisioner : key).headers },
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
  ])('the example of %s equals the response to such a request', async (name, target, credential) => {
    const method = target.startsWith('/v0/service_accounts') ? 'DELETE' : 'GET';
    const { body, headers } = await api.request(target, { method, ...bearer(credential ?? key) });
    const [example] = Object.values(document.components.responses[name]?.content?.['application/json'].examples ?? {});
    expect(body).toEqual({
      ...z.record(z.string(), z.unknown()).parse(example?.value),
      requestId: headers.get('x-request-id'),
    });
  });
});

it('the reference page and its resources come from this service, under a policy that allows nothing inline', async () => {
  const { status, headers, text } = await api.request('/docs');
  expect([status, headers.get('content-type')]).toEqual([200, 'text/html; charset=utf-8']);
  expect(headers.get('content-security-policy')).toBe(PAGE_POLICY);
  const addresses = [...text.matchAll(/(?:href|src)="([^"]+)"/g)].map(([, address = '']) => address);
  expect(addresses).toEqual([
    'favicon.ico',
    'docs/swagger-ui.css',
    'docs/swagger-ui-bundle.js',
    'docs/start.js',
    'openapi.json',
  ]);
  for (const address of addresses) expect([address, (await api.request(`/${address}`)).status]).toEqual([address, 200]);
});

describe('the TypeScript client', () => {
  const ACCOUNT = 'acme & söhne';

  let owner: string;
  let client: MeterlineClient;

  beforeAll(async () => {
    owner = await api.key(ACCOUNT);
    client = new MeterlineClient({ baseUrl: api.url, credential: owner, retries: 0 });
    await api.seed(
      Array.from({ length: 250 }, (_, n) =>
        event({ accountId: ACCOUNT, resourceName: `box-${n}`, workspace: `w${n % 3}`, cost: `${n}.000000000001` }),
      ),
    );
  });
  it('the client iterates over pages and groups and returns all groups at once, and they add up to the total', async () => {
    const query = { ...DAY, groupBy: ['resource_name'], limit: 60 } as const;
    const pages: MetricsResponse[] = [];
    for await (const page of client.metricsPages(ACCOUNT, query)) pages.push(page);
    expect(pages.map(({ data }) => data.length)).toEqual([60, 60, 60, 60, 10]);
    const entries = pages.flatMap(({ data }) => data);
    expect(new Set(entries.map(({ resourceName }) => resourceName)).size).toBe(250);
    const iterated: unknown[] = [];
    for await (const entry of client.metricsEntries(ACCOUNT, query)) iterated.push(entry);
    const { data, meta, summary } = await client.allMetrics(ACCOUNT, query);
    expect([iterated, data, meta]).toEqual([entries, entries, { hasMore: false, nextCursor: '' }]);
    expect(sumDecimals(entries.map((entry) => entry.summary.cost))).toBe(summary.totalCost);
    expect(summary.totalCost).toBe('31125.00000000025');
  });

  it('the client sends every parameter', async () => {
    const query = {
      startTime: new Date(DAY.startTime),
      endTime: DAY.endTime,
      resolution: 'daily',
      groupBy: ['workspace', 'billing_dimension'],
      workspace: 'w1',
      resourceType: 'sandbox',
      resourceName: 'box-7',
      resourceUuid: 'u-1',
      billingDimension: 'sandbox_compute_runtime_gbs',
      limit: 5,
      cursor: '',
    } as const;
    const { data, resolution } = await client.metrics(ACCOUNT, query);
    expect([resolution, data.length, data[0]?.summary.cost, data[0]?.timeseries.length]).toEqual([
      'daily',
      1,
      '7.000000000001',
      1,
    ]);
    expect(
      (await client.metrics(ACCOUNT, { ...query, resourceUuid: undefined, withoutResourceUuid: true })).data,
    ).toEqual([]);
    const several = { ...query, workspace: ['w1', 'nobody'], resourceUuid: ['u-2', 'u-1'], withoutResourceUuid: false };
    expect((await client.metrics(ACCOUNT, several)).data).toEqual(data);
    const excluding = { ...several, excludeResourceName: ['nobody'], excludeWithoutResourceUuid: true };
    expect((await client.metrics(ACCOUNT, excluding)).data).toEqual(data);
    expect((await client.metrics(ACCOUNT, { ...several, excludeWorkspace: 'w1' })).data).toEqual([]);
  });

  it('the client lists enums', async () => {
    expect(await client.resourceTypes(ACCOUNT, DAY)).toEqual(['sandbox']);
    expect(await client.resourceTypes(ACCOUNT, { ...DAY, resourceType: ['agent', 'job'] })).toEqual([]);
    expect(await client.groupByDimensions(ACCOUNT)).toContain('workspace');
    const dimensions = await client.billingDimensions(ACCOUNT);
    expect(dimensions).toHaveLength(12);
    expect(dimensions[0]).toEqual({
      billingDimension: 'sandbox_compute_runtime_gbs',
      resourceType: 'sandbox',
      unit: 'gbs',
      price: { amount: '0.0000115', per: '1', currency: 'USD', effectiveFrom: '1970-01-01T00:00:00Z' },
    });
  });

  it('the client lists accounts with a base URL that ends with v0 and a credential from a function', async () => {
    const other = new MeterlineClient({ baseUrl: `${api.url}/v0/`, getCredential: async () => owner });
    expect(await other.accounts()).toEqual([
      { id: ACCOUNT, name: ACCOUNT, role: 'admin', createdAt: expect.any(String) },
    ]);
  });

  it('the client creates, lists and revokes keys of a service account', async () => {
    const { key: secret, ...created } = await client.createApiKey('reports', {
      role: 'member',
      expiresAt: new Date('2099-12-31T00:00:00Z'),
    });
    expect(created).toEqual({
      id: expect.stringMatching(/^[0-9a-f]{24}$/),
      clientId: 'reports',
      account: ACCOUNT,
      role: 'member',
      createdAt: '2025-11-15T12:00:00.000Z',
      expiresAt: '2099-12-31T00:00:00.000Z',
      revoked: false,
    });
    const reader = new MeterlineClient({ baseUrl: api.url, credential: secret });
    expect(await reader.accounts()).toMatchObject([{ id: ACCOUNT, role: 'member' }]);
    await client.revokeApiKey('reports', created.id);
    const [listed, ...others] = await client.apiKeys('reports');
    expect([others, listed]).toEqual([[], expect.objectContaining({ ...created, revoked: true })]);
    expect(await client.accountApiKeys(ACCOUNT)).toContainEqual(listed);
    const backend = new MeterlineClient({ baseUrl: api.url, credential: provisioner });
    expect(await backend.apiKeys('reports', { account: ACCOUNT })).toEqual([listed]);
  });

  it('the client names an account', async () => {
    const backend = new MeterlineClient({ baseUrl: api.url, credential: provisioner });
    expect(await backend.nameAccount('a/b', 'A slash')).toMatchObject({ id: 'a/b', name: 'A slash' });
  });

  it('the client lists alerts and their deliveries', async () => {
    const { secret: _, ...alert } = await client.alerts.create(ACCOUNT, { ...ALERT_SETTINGS, amount: '0.1' });
    expect(alert.amount).toBe('0.1');
    const delivery = await client.alerts.test(ACCOUNT, alert.id);
    expect(await client.alerts.list(ACCOUNT)).toEqual([alert]);
    expect(await client.alerts.deliveries(ACCOUNT, alert.id)).toEqual([delivery]);
  });

  it('the client throws errors with status, code, message, details and request id', async () => {
    await expect(client.metrics(ACCOUNT, { ...DAY, startTime: 'yesterday' })).rejects.toMatchObject({
      name: 'MeterlineError',
      status: 400,
      code: 'invalid_parameter',
      message: expect.stringContaining('startTime must be RFC 3339'),
      details: [{ parameter: 'startTime', message: expect.any(String) }],
      requestId: expect.stringMatching(/^[0-9a-f-]{36}$/),
      retryAfter: undefined,
    });
  });

  const ONE_GET = `
    import { MeterlineClient } from ${JSON.stringify(fileURLToPath(new URL('../../packages/client/src/index.ts', import.meta.url)))};
    const client = new MeterlineClient({ baseUrl: location.origin, credential: 'mlk_…' });
    const { summary } = await client.metrics('acme', { startTime: new Date(0), endTime: new Date() });
    document.title = summary.totalCost;`;

  /** A program that bundles the module above like a web page and prints the result. */
  const BUNDLE = `
    import { build } from 'vite';
    const [one] = await build({
      configFile: false,
      logLevel: 'silent',
      plugins: [{ name: 'entry', resolveId: (id) => (id.endsWith('/entry') ? id : null), load: (id) => (id.endsWith('/entry') ? process.argv[1] : null) }],
      build: { write: false, minify: true, lib: { entry: 'entry', formats: ['es'] } },
    });
    const own = one.output.map(({ fileName }) => fileName);
    const imports = one.output.flatMap((chunk) => [...chunk.imports, ...chunk.dynamicImports]).filter((name) => !own.includes(name));
    console.log(JSON.stringify({ code: one.output.map(({ code }) => code).join(''), imports }));`;

  it('a bundle of the client with one GET needs nothing of Node, has no eval, and is at most 17 kB compressed', async () => {
    const args = ['--input-type=module', '--eval', BUNDLE, ONE_GET];
    const { stdout } = await promisify(execFile)(process.execPath, args, { maxBuffer: 10_000_000 });
    const { code, imports } = JSON.parse(stdout);
    expect(imports).toEqual([]);
    expect(gzipSync(code).length).toBeLessThan(17_000);
    expect(code.length).toBeGreaterThan(1_000);
    expect(code).not.toMatch(/browser-external|\brequire\(|process\.env|\bBuffer\.|\beval\(|\bFunction\(/);
  });
});
