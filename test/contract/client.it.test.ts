/** The client against the real service, and as a web page bundles it. */
import { execFile } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { gzipSync } from 'node:zlib';
import { afterAll, beforeAll, expect, it } from '@jest/globals';
import { sumDecimals } from '@meterline/catalog';
import { MeterlineClient, type MetricsResponse } from '@meterline/client';
import { ALERT_SETTINGS } from '../harness/alerts.js';
import { DAY, startApi, type TestApi } from '../harness/api.js';
import { event } from '../harness/events.js';

const ACCOUNT = 'acme & söhne';

let api: TestApi;
let key: string;
let client: MeterlineClient;

beforeAll(async () => {
  api = await startApi();
  key = await api.key(ACCOUNT);
  client = new MeterlineClient({ baseUrl: api.url, credential: key, retries: 0 });
  await api.seed(
    Array.from({ length: 250 }, (_, n) =>
      event({ accountId: ACCOUNT, resourceName: `box-${n}`, workspace: `w${n % 3}`, cost: `${n}.000000000001` }),
    ),
  );
});
afterAll(() => api.stop());

it('the client iterates over every page and every group, gives all of them at once, and they add up to the total', async () => {
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
  });
});

it('the client lists accounts, with an address that ends with v0 and a key that is fetched', async () => {
  const other = new MeterlineClient({ baseUrl: `${api.url}/v0/`, getCredential: async () => key });
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
});

it('the client lists alerts and their deliveries', async () => {
  const { secret: _, ...alert } = await client.alerts.create(ACCOUNT, { ...ALERT_SETTINGS, amount: '0.1' });
  expect(alert.amount).toBe('0.1');
  const delivery = await client.alerts.test(ACCOUNT, alert.id);
  expect(await client.alerts.list(ACCOUNT)).toEqual([alert]);
  expect(await client.alerts.deliveries(ACCOUNT, alert.id)).toEqual([delivery]);
});

it('refusals carry status, code, message, details and request id', async () => {
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

/** A program that bundles the module above as a web page does, and prints what becomes of it. */
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

it('the client makes a bundle for one GET that asks for nothing of Node, has no eval and at most 16 kB, compressed', async () => {
  const args = ['--input-type=module', '--eval', BUNDLE, ONE_GET];
  const { stdout } = await promisify(execFile)(process.execPath, args, { maxBuffer: 10_000_000 });
  const { code, imports } = JSON.parse(stdout);
  expect(imports).toEqual([]);
  expect(gzipSync(code).length).toBeLessThan(16_000);
  expect(code.length).toBeGreaterThan(1_000);
  expect(code).not.toMatch(/browser-external|\brequire\(|process\.env|\bBuffer\.|\beval\(|\bFunction\(/);
});
