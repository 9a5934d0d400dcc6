/** Dimensions that a catalog file adds, from an event over HTTP to the API, the command line, CSV, FOCUS and alerts. */
import { writeFile } from 'node:fs/promises';
import { afterAll, beforeAll, expect, it } from '@jest/globals';
import { DEFAULT_PRICE_BOOK_FILE } from '@meterline/catalog';
import { MeterlineClient, type MetricsQuery } from '@meterline/client';
import { openEmitter } from '@meterline/emitter';
import { registerDimensions } from '@meterline/warehouse';
import { runMeterline } from '../cli/run-command.js';
import { faultsOf, parseCsv } from '../focus/check.js';
import { startReceiver } from '../harness/alerts.js';
import { type Product, startProduct } from '../harness/product.js';
import { drained } from '../harness/queue.js';
import { type HttpProcess, launchService, type ServiceProcess } from '../harness/services.js';
import { uniquePrefix } from '../harness/stack.js';
import { testFolder } from '../harness/test-folder.js';
import { until } from '../harness/waiting.js';

const GPU = { billingDimension: 'gpu_cluster_runtime_seconds', resourceType: 'gpu_cluster', unit: 'seconds' };
const CALLS = { billingDimension: 'agent_tool_calls_count', resourceType: 'agent', unit: 'count' };
const WINDOW = { startTime: '2026-01-01T00:00:00Z', endTime: '2026-02-01T00:00:00Z' };
const FLAGS = ['--month', '2026-01'];
const account = uniquePrefix();
const folder = testFolder();

let product: Product;
let env: { readonly CATALOG: string; readonly PRICE_BOOK: string };
let worker: ServiceProcess;
let query: HttpProcess;
let collector: HttpProcess;
let client: MeterlineClient;
let emitterKey: string;
let cli: Record<string, string>;

const event = (n: number, changes: object) => ({
  eventId: `01999f3c-2a00-7c31-9d5e-0b6f1e2d3c0${n}`,
  workspace: 'main',
  resourceName: 'a100',
  timestamp: '2026-01-02T00:00:00Z',
  ...changes,
});
const used = ({ billingDimension, resourceType }: typeof GPU, usage: string) => ({
  billingDimension,
  resourceType,
  usage,
});

async function writeFiles(name: string, dimensions: readonly (typeof GPU)[]): Promise<typeof env> {
  const files = { CATALOG: folder(`${name}.json`), PRICE_BOOK: folder(`${name}-book.json`) };
  const prices = dimensions.map(({ billingDimension }, index) => {
    return { billingDimension, effectiveFrom: '1970-01-01T00:00:00Z', amount: `0.${index + 5}` };
  });
  await writeFile(files.CATALOG, JSON.stringify({ dimensions }));
  const book = { ...DEFAULT_PRICE_BOOK_FILE, version: 3, prices: [...DEFAULT_PRICE_BOOK_FILE.prices, ...prices] };
  await writeFile(files.PRICE_BOOK, JSON.stringify(book));
  return files;
}

async function send(...events: readonly object[]) {
  const headers = { authorization: `Bearer ${emitterKey}`, 'content-type': 'application/json' };
  const response = await fetch(`${collector.url}/v0/events`, { method: 'POST', headers, body: JSON.stringify(events) });
  const body: unknown = await response.json();
  await drained(product.queue);
  return { status: response.status, body };
}

beforeAll(async () => {
  product = await startProduct();
  env = await writeFiles('catalog', [GPU, CALLS]);
  [worker, query, collector, emitterKey] = await Promise.all([
    product.startIngest(env),
    product.startQuery({ CATALOG: env.CATALOG }),
    product.startCollector(env),
    product.key(account, 'emitter'),
  ]);
  const key = await product.key(account);
  client = new MeterlineClient({ baseUrl: query.url, credential: key });
  cli = { METERLINE_API_URL: query.url, METERLINE_API_KEY: key, METERLINE_ACCOUNT: account };
  const sent = await send(
    event(1, used(GPU, '1000.5')),
    event(2, used(CALLS, '8')),
    event(3, { billingDimension: 'agent_compute_runtime_gbs', resourceType: 'agent', usage: '1000000' }),
  );
  expect(sent).toMatchObject({ status: 202, body: { accepted: 3 } });
});
afterAll(async () => {
  await Promise.all([worker.stop(), query.stop(), collector.stop()]);
  await product.close();
});

it('the collector checks the events of added dimensions like those of built-in ones', async () => {
  const { body } = await send(
    event(4, used(CALLS, '1.5')),
    event(5, { ...used(GPU, '1'), resourceType: 'agent' }),
    event(6, { ...used(GPU, '1'), billingDimension: 'gpu_cluster_memory_seconds' }),
  );
  const results = ['invalid_usage', 'dimension_mismatch', 'invalid_billing_dimension'].map((reason) => ({ reason }));
  expect(body).toMatchObject({ accepted: 0, results });
  expect(JSON.stringify(body)).toContain(
    'custom_domain_active_time_hours, gpu_cluster_runtime_seconds, agent_tool_calls_count',
  );
});

it('the emitter sends events and sums of dimensions that it does not know, and reports those that the collector rejects', async () => {
  const problems: string[] = [];
  const emitter = await openEmitter({
    ...{ url: collector.url, apiKey: emitterKey, onProblem: ({ message }) => void problems.push(message) },
  });
  const common = { accountId: account, workspace: 'main', resourceName: 'h200', timestamp: '2026-02-02T00:00:00Z' };
  emitter.record({ ...common, ...used(GPU, '0.25') });
  emitter.record({ ...common, ...used(GPU, '1'), billingDimension: 'gpu_cluster_memory_seconds' });
  for (let n = 0; n < 3; n += 1)
    emitter.add({ accountId: account, workspace: 'main', resourceName: 'h200', ...used(CALLS, '1') });
  await emitter.close();
  expect(problems).toEqual([expect.stringContaining('billingDimension must be one of sandbox_compute_runtime_gbs')]);
  await drained(product.queue);
  const events = { startTime: '2026-02-01T00:00:00Z', endTime: '2100-01-01T00:00:00Z', resourceName: 'h200' };
  expect((await client.events(account, events)).data.map(({ usage }) => usage).sort()).toEqual(['0.25', '3']);
});

it('metrics have the added dimensions and resource types as groups and filters', async () => {
  const by = async (dimension: 'resource_type' | 'billing_dimension', filters: object = {}) => {
    const groupBy: MetricsQuery['groupBy'] = [dimension];
    const { data } = await client.metrics(account, { ...WINDOW, resolution: 'daily', groupBy, ...filters });
    return data.map(({ resourceType, billingDimension, summary: { cost, usage } }) =>
      [resourceType, billingDimension, cost, usage].filter((value) => value !== undefined),
    );
  };
  expect(await by('billing_dimension')).toEqual([
    ['gpu_cluster', 'gpu_cluster_runtime_seconds', '500.25', '1000.5'],
    ['agent', 'agent_compute_runtime_gbs', '11.5', '1000000'],
    ['agent', 'agent_tool_calls_count', '4.8', '8'],
  ]);
  expect(await by('resource_type', { excludeBillingDimension: 'agent_compute_runtime_gbs' })).toEqual([
    ['gpu_cluster', '500.25'],
    ['agent', '4.8'],
  ]);
  expect(await by('resource_type', { resourceType: 'gpu_cluster' })).toEqual([['gpu_cluster', '500.25']]);
  expect(await client.resourceTypes(account, WINDOW)).toEqual(['agent', 'gpu_cluster']);
  await expect(by('resource_type', { resourceType: 'gpu' })).rejects.toMatchObject({
    code: 'invalid_parameter',
    message: expect.stringContaining('custom_domain, gpu_cluster'),
  });
});

it('the enum billing-dimensions lists the added dimensions after the built-in ones, with their prices', async () => {
  const dimensions = await client.billingDimensions(account);
  expect(dimensions.slice(12)).toEqual([
    { ...GPU, price: expect.objectContaining({ amount: '0.5' }) },
    { ...CALLS, price: expect.objectContaining({ amount: '0.6' }) },
  ]);
  const [first] = (await client.events(account, { ...WINDOW, resourceType: 'gpu_cluster' })).data;
  expect(first?.price).toMatchObject({ amount: '0.5' });
});

it('the command line shows their units, and estimates them by the prices of the API', async () => {
  const run = (...args: string[]) => runMeterline(args, { env: cli });
  const table = await run(
    'metrics',
    ...FLAGS,
    '--group-by',
    'billing_dimension',
    '--filter',
    'resourceType=gpu_cluster',
  );
  expect(table.stdout).toContain('1,000.5 seconds');
  const csv = await run('metrics', ...FLAGS, '--group-by', 'billing_dimension', '--csv');
  expect(csv.stdout).toMatch(/gpu_cluster,gpu_cluster_runtime_seconds,.*,500\.25,1000\.5,seconds,/);
  expect((await run('explain', ...FLAGS, '--filter', 'resourceType=gpu_cluster')).stdout).toContain('$0.50 per second');
  expect((await run('dimensions')).stdout).toMatch(
    /gpu_cluster_runtime_seconds +gpu_cluster +seconds +\$0\.50 per second/,
  );
  expect((await run('estimate', 'gpu_cluster_runtime_seconds=3')).stdout).toContain('3 seconds  $1.50');
  const unknown = await run('metrics', ...FLAGS, '--resource-type', 'gpu');
  expect(unknown).toMatchObject({ code: 2, stderr: expect.stringContaining('must be one of sandbox') });
});

it('a FOCUS export has them as services of the category Other', async () => {
  const { stdout } = await runMeterline(['export', 'focus', ...FLAGS], { env: cli });
  const charges = parseCsv(stdout);
  expect(faultsOf(charges)).toEqual([]);
  expect(charges.rows.find((row) => row['SkuId'] === GPU.billingDimension)).toMatchObject({
    ...{ ServiceCategory: 'Other', ServiceSubcategory: 'Other (Other)', ServiceName: 'Gpu Clusters' },
    ...{ ResourceType: 'Gpu Cluster', SkuMeter: 'Runtime', ConsumedUnit: 'Seconds', BilledCost: '500.25' },
  });
});

it('an alert on the usage of an added dimension fires', async () => {
  const receiver = await startReceiver();
  const alerts = await product.startAlerts();
  await client.alerts.create(account, {
    ...{ name: 'GPUs', period: 'month', measure: 'usage', amount: '5', thresholds: [100], url: receiver.url },
    filters: { billingDimension: [GPU.billingDimension] },
  });
  await send(event(7, { ...used(GPU, '6.5'), timestamp: new Date().toISOString() }));
  await until('the webhook has arrived', () => receiver.received.length > 0);
  expect(receiver.received[0]?.text).toContain('"measure":"usage","amount":5,"threshold":100,"value":6.5');
  expect((await runMeterline(['alerts', 'list'], { env: cli })).stdout).toContain('5 seconds');
  await alerts.stop();
  await receiver.close();
});

it.each<['ingest' | 'query', string, () => Promise<Partial<typeof env>>, string]>([
  [
    'ingest',
    'no catalog',
    async () => ({}),
    'it lacks agent_tool_calls_count with the resource type agent and the unit count',
  ],
  ['query', 'no catalog', async () => ({}), 'it lacks agent_tool_calls_count'],
  [
    'ingest',
    'a catalog without a dimension',
    () => writeFiles('less', [CALLS]),
    'it lacks gpu_cluster_runtime_seconds',
  ],
  [
    'query',
    'a catalog with another resource type',
    () => writeFiles('other', [CALLS, { ...GPU, resourceType: 'gpu' }]),
    'it defines gpu_cluster_runtime_seconds with the resource type gpu_cluster and the unit seconds differently',
  ],
  [
    'ingest',
    'an invalid catalog',
    () => writeFiles('bad', [{ ...GPU, unit: 'x' }]),
    'must start with the resource type',
  ],
  ['ingest', 'no price book', async () => ({ CATALOG: env.CATALOG }), 'set PRICE_BOOK to a price book that has'],
])('%s with %s does not start, and says why', async (service, _given, files, reason) => {
  const started = launchService(service, { PORT: '0', ...product.env, ...(await files()) });
  expect(await started.exited).toEqual({ code: 1, signal: null });
  expect(started.errorLines()).toEqual([expect.stringContaining(reason)]);
});

it('catalog remove keeps a dimension that has events, and removes one that has none', async () => {
  const extra = { billingDimension: 'gpu_cluster_memory_count', resourceType: 'gpu_cluster', unit: 'count' };
  await registerDimensions(product.shards, [GPU, CALLS, extra]);
  const remove = (name: string) => runMeterline(['catalog', 'remove', name], { env: product.env });
  expect(await remove(GPU.billingDimension)).toMatchObject({
    ...{ code: 1, stderr: expect.stringContaining('has events, so it must stay in CATALOG') },
  });
  expect(await remove(extra.billingDimension)).toMatchObject({
    code: 0,
    stdout: `Removed ${extra.billingDimension}.\n`,
  });
  expect(await remove(extra.billingDimension)).toMatchObject({
    code: 1,
    stderr: expect.stringContaining('is not registered'),
  });
});
