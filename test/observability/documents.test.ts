/** Dashboard, alerts and the table of metrics speak of what the services really tell. */
import { readFile } from 'node:fs/promises';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, expect, it, jest } from '@jest/globals';
import { parser } from '@prometheus-io/lezer-promql';
import { parse as parseYaml } from 'yaml';
import { z } from 'zod';
import { openPipeline, type Pipeline } from '../e2e/pipeline.js';
import { killServices, startIngest, startQuery } from '../services.js';
import { adminUrl } from './scrape.js';

jest.setTimeout(60_000);

const document = (name: string) =>
  readFile(fileURLToPath(new URL(`../../docs/observability/${name}`, import.meta.url)), 'utf8');

interface Metric {
  readonly name: string;
  readonly kind: string;
}

const SUFFIXES: Readonly<Record<string, readonly string[]>> = { histogram: ['_bucket', '_sum', '_count'] };

let pipeline: Pipeline;
let metrics: readonly Metric[];
/** The names that an expression may use. */
let series: ReadonlySet<string>;
beforeAll(async () => {
  pipeline = await openPipeline();
  const env = { ...pipeline.env, ADMIN_PORT: '0' };
  const services = await Promise.all([startIngest(env), startQuery({ ...env, CURSOR_SECRET: 'x'.repeat(32) })]);
  const pages = await Promise.all(services.map(async (service) => text(`${await adminUrl(service)}/metrics`)));
  metrics = pages.flatMap(declaredMetrics);
  series = new Set(metrics.flatMap(({ name, kind }) => (SUFFIXES[kind] ?? ['']).map((suffix) => `${name}${suffix}`)));
});
afterAll(async () => {
  await killServices();
  await pipeline.close();
});

async function text(url: string): Promise<string> {
  return (await fetch(url)).text();
}

/** What a page declares, whether or not there is a sample of it yet. */
function declaredMetrics(page: string): Metric[] {
  return [...page.matchAll(/^# TYPE (\S+) (\S+)$/gm)].map(([, name = '', kind = '']) => ({ name, kind }));
}

/** The names in an expression of PromQL. @throws when it is none */
function namesIn(expression: string): string[] {
  // Grafana fills this in.
  const promql = expression.replaceAll('$__rate_interval', '5m');
  const names: string[] = [];
  parser.parse(promql).iterate({
    enter: (node) => {
      if (node.type.isError) throw new Error(`not PromQL at ${node.from}: ${promql}`);
      if (node.name === 'VectorSelector') names.push(/^[\w:]+/.exec(promql.slice(node.from, node.to))?.[0] ?? '');
    },
  });
  if (names.length === 0) throw new Error(`no metric in ${promql}`);
  return names;
}

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
          annotations: z.strictObject({ summary: z.string(), description: z.string() }),
        }),
      ),
    }),
  ),
});

describe('the dashboard', () => {
  it('shows metrics that exist, from a data source that is asked for', async () => {
    const { panels, templating } = dashboard.parse(JSON.parse(await document('dashboard.json')));
    expect(templating.list).toMatchObject([{ name: 'datasource', type: 'datasource' }]);
    const shown = panels.filter(({ type }) => type !== 'row');
    expect(shown.filter(({ datasource, targets }) => !datasource || targets.length === 0)).toEqual([]);
    const names = shown.flatMap(({ targets }) => targets.flatMap(({ expr }) => namesIn(expr)));
    expect(names.length).toBeGreaterThan(20);
    expect(names.filter((name) => !series.has(name))).toEqual([]);
  });

  it('leaves out none of our own metrics', async () => {
    const text = await document('dashboard.json');
    expect(metrics.filter(({ name }) => name.startsWith('meterline_') && !text.includes(name))).toEqual([]);
  });
});

describe('the alerts', () => {
  it('look at metrics that exist', async () => {
    const { groups } = alerts.parse(parseYaml(await document('alerts.yaml')));
    const names = groups.flatMap(({ rules }) => rules.flatMap(({ expr }) => namesIn(expr)));
    expect(names.length).toBeGreaterThan(10);
    expect(names.filter((name) => !series.has(name))).toEqual([]);
  });

  it('are all explained, and no others', async () => {
    const { groups } = alerts.parse(parseYaml(await document('alerts.yaml')));
    const explained = [...(await document('README.md')).matchAll(/^### (Meterline\w+)$/gm)].map(([, name]) => name);
    expect(explained).toEqual(groups.flatMap(({ rules }) => rules.map(({ alert }) => alert)));
  });
});

describe('the table of metrics', () => {
  it('lists each of our own with its kind, and no others', async () => {
    const rows = [...(await document('README.md')).matchAll(/^\| `(meterline_\w+)` \| (\w+) \|/gm)];
    const listed = rows.map(([, name, kind]) => `${name} ${kind}`).sort();
    const own = metrics.filter(({ name }) => name.startsWith('meterline_')).map(({ name, kind }) => `${name} ${kind}`);
    expect(listed).toEqual([...new Set(own)].sort());
  });
});
