/** The dashboard, the alerts and the list of metrics name only metrics that the services have. */
import { readFile } from 'node:fs/promises';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, expect, it } from '@jest/globals';
import { parse as parseYaml } from 'yaml';
import { z } from 'zod';
import { type Product, startProduct } from '../harness/product.js';
import { parseExpression } from './expressions.js';
import { adminUrl } from './scrape.js';

const document = (name: string) =>
  readFile(fileURLToPath(new URL(`../../docs/observability/${name}`, import.meta.url)), 'utf8');

interface Metric {
  readonly name: string;
  readonly kind: string;
}

const SUFFIXES: Readonly<Record<string, readonly string[]>> = { histogram: ['_bucket', '_sum', '_count'] };

let product: Product;
let metrics: readonly Metric[];
/** The names that an expression may use. */
let series: ReadonlySet<string>;
beforeAll(async () => {
  product = await startProduct();
  const env = { ADMIN_PORT: '0' };
  const starts = [product.startIngest, product.startQuery, product.startCollector, product.startAlerts];
  const services = await Promise.all(starts.map((start) => start(env)));
  const pages = await Promise.all(services.map(async (service) => text(`${await adminUrl(service)}/metrics`)));
  metrics = pages.flatMap(declaredMetrics);
  series = new Set(metrics.flatMap(({ name, kind }) => (SUFFIXES[kind] ?? ['']).map((suffix) => `${name}${suffix}`)));
});
afterAll(() => product.close());

async function text(url: string): Promise<string> {
  return (await fetch(url)).text();
}

/** What a page declares, whether or not there is a sample of it yet. */
function declaredMetrics(page: string): Metric[] {
  return [...page.matchAll(/^# TYPE (\S+) (\S+)$/gm)].map(([, name = '', kind = '']) => ({ name, kind }));
}

/** Those that Prometheus itself adds, and that of a histogram's buckets. */
const GIVEN_LABELS = ['instance', 'le'];

/** The labels of each of our metrics, as metrics.md lists them. */
async function listedLabels(): Promise<Map<string, readonly string[]>> {
  const rows = (await document('metrics.md')).matchAll(/^\| `(meterline_\w+)` \| \w+ \| ([^|]*)\|/gm);
  return new Map(
    [...rows].map(([, name = '', cell = '']) => [name, [...cell.matchAll(/`(\w+)`/g)].map(([, label = '']) => label)]),
  );
}

/** The names of the metrics that an expression reads. @throws when it has a mistake, or names a label that is not there */
function namesIn(expression: string, listed: ReadonlyMap<string, readonly string[]>): string[] {
  const { selectors, labels } = parseExpression(expression);
  const labelsOf = (series: string) =>
    listed.get(series) ?? listed.get(series.replace(/_(bucket|sum|count)$/, '')) ?? [];
  const all = new Set([...GIVEN_LABELS, ...selectors.flatMap(({ name }) => labelsOf(name))]);
  const unknown = [
    ...labels.filter((label) => !all.has(label)),
    ...selectors.flatMap(({ name, labels: chosen }) => chosen.filter((label) => !labelsOf(name).includes(label))),
  ];
  if (unknown.length > 0) throw new Error(`no label ${unknown.join(', ')}: ${expression}`);
  if (selectors.length === 0) throw new Error(`no metric in ${expression}`);
  return selectors.map(({ name }) => name);
}

it.each([
  'sum(rate(meterline_jobs_taken_total[5m])',
  'sum(rate(meterline_jobs_taken_total[5m])))',
  'sum(rate(meterline_jobs_taken_total[5m]) > 0',
  'rate(meterline_jobs_taken_total[5 minutes])',
  'meterline_queue_jobs{state=failed}',
  'meterline_queue_jobs{state="failed"',
  'meterline_queue_jobs meterline_consuming',
  'sum of (meterline_queue_jobs)',
  'sum by state (meterline_queue_jobs)',
  'meterline_queue_jobs >',
  'time() - ; meterline_consuming',
  '',
])('an expression with a mistake is rejected: %s', (text) => {
  expect(() => parseExpression(text)).toThrow('not an expression');
});

it('an expression is rejected for a label that its metrics do not have', async () => {
  const listed = await listedLabels();
  expect(() => namesIn('sum by (stat) (meterline_queue_jobs)', listed)).toThrow('no label stat');
  expect(() => namesIn('meterline_queue_jobs{stat="failed"}', listed)).toThrow('no label stat');
  expect(namesIn('sum by (state) (meterline_queue_jobs{state="failed"}) > 0', listed)).toEqual([
    'meterline_queue_jobs',
  ]);
});

const dashboard = z.object({
  templating: z.object({ list: z.array(z.object({ name: z.string(), type: z.string() })) }),
  panels: z.array(
    z.object({
      title: z.string().min(1),
      type: z.string(),
      datasource: z.object({ uid: z.string().regex(/^\$\{datasource\}$/) }).optional(),
      targets: z.array(z.object({ expr: z.string() })).default([]),
    }),
  ),
});

const alerts = z.object({
  groups: z.array(
    z.strictObject({
      name: z.string(),
      rules: z.array(
        z.strictObject({
          alert: z.string().regex(/^Meterline\w+$/),
          expr: z.string(),
          for: z.string().regex(/^\d+m$/),
          labels: z.strictObject({ severity: z.enum(['critical', 'warning']) }),
          annotations: z.strictObject({ summary: z.string(), description: z.string(), action: z.string().min(20) }),
        }),
      ),
    }),
  ),
});

it('the dashboard shows metrics that exist, from a data source that is asked for', async () => {
  const { panels, templating } = dashboard.parse(JSON.parse(await document('dashboard.json')));
  expect(templating.list).toMatchObject([{ name: 'datasource', type: 'datasource' }]);
  const shown = panels.filter(({ type }) => type !== 'row');
  expect(shown.filter(({ datasource, targets }) => !datasource || targets.length === 0)).toEqual([]);
  const listed = await listedLabels();
  const names = shown.flatMap(({ targets }) => targets.flatMap(({ expr }) => namesIn(expr, listed)));
  expect(names.length).toBeGreaterThan(20);
  expect(names.filter((name) => !series.has(name))).toEqual([]);
});

it('the dashboard leaves out none of our own metrics', async () => {
  const text = await document('dashboard.json');
  expect(metrics.filter(({ name }) => name.startsWith('meterline_') && !text.includes(name))).toEqual([]);
});

it('the alerts look at metrics that exist', async () => {
  const { groups } = alerts.parse(parseYaml(await document('alerts.yaml')));
  const listed = await listedLabels();
  const names = groups.flatMap(({ rules }) => rules.flatMap(({ expr }) => namesIn(expr, listed)));
  expect(names.length).toBeGreaterThan(10);
  expect(names.filter((name) => !series.has(name))).toEqual([]);
});

it('metrics.md lists the metrics of the running services, and no others', async () => {
  const own = metrics.map(({ name }) => name).filter((name) => name.startsWith('meterline_'));
  expect([...(await listedLabels()).keys()].sort()).toEqual([...new Set(own)].sort());
});
