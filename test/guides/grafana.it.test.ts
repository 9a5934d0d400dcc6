/**
 * The queries of the dashboard and of the alert rule, asked and evaluated as the Infinity data source does it with its backend parser, have the
 * figures of the API. Grafana itself is not run. Source: grafana/grafana-infinity-datasource, pkg/infinity, and infinity-libs, lib/go/macros.
 */
import { readFile } from 'node:fs/promises';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import jsonata from 'jsonata';
import { parse as parseYaml } from 'yaml';
import { z } from 'zod';
import { ACME } from '../browser/acme.js';
import { NOW, readMetrics, startApi, type TestApi } from '../harness/api.js';
import { event } from '../harness/events.js';

const query = z.object({
  type: z.literal('json'),
  parser: z.literal('backend'),
  source: z.literal('url'),
  url: z.string(),
  url_options: z.object({
    method: z.literal('GET'),
    params: z.array(z.object({ key: z.string(), value: z.string() })),
  }),
  root_selector: z.string(),
  columns: z.array(z.object({ selector: z.string(), text: z.string(), type: z.string() })),
});
type Query = z.output<typeof query>;

const dashboard = z.object({
  templating: z.object({ list: z.tuple([z.object({ query: z.object({ infinityQuery: query }) })]) }),
  panels: z.array(z.object({ title: z.string(), timeFrom: z.string().optional(), targets: z.tuple([query]) })),
});
const dataSource = z.object({
  datasources: z.tuple([
    z.object({ jsonData: z.record(z.string(), z.unknown()), secureJsonData: z.record(z.string(), z.string()) }),
  ]),
});
const alerting = z.object({
  groups: z.tuple([z.object({ rules: z.tuple([z.object({ data: z.array(z.object({ model: z.unknown() })) })]) })]),
});

const fileOf = (path: string) => readFile(new URL(`../../grafana/${path}`, import.meta.url), 'utf8');

/** The dashboard's range; and what `now-1M/M` means at its end. */
const RANGE = { from: '2025-10-16T12:00:00.500Z', to: NOW.toISOString() };
const LAST_MONTH = '2025-10-01T00:00:00Z';

let api: TestApi;
let key: string;
let headers: Record<string, string>;
let costs: z.output<typeof dashboard>;
beforeAll(async () => {
  api = await startApi();
  await api.seed([...ACME, event({ accountId: 'initech', cost: '7', at: '2025-11-14T09:00:00Z' })]);
  key = await api.key('acme');
  costs = dashboard.parse(JSON.parse(await fileOf('dashboards/costs.json')));
  const { datasources } = dataSource.parse(parseYaml(await fileOf('provisioning/datasources/meterline.yaml')));
  const [{ jsonData, secureJsonData }] = datasources;
  const named = Object.entries(jsonData).filter(([name]) => name.startsWith('httpHeaderName'));
  headers = Object.fromEntries(
    named.map(([name, header]) => [header, secureJsonData[name.replace('Name', 'Value')] ?? '']),
  );
});
afterAll(() => api.stop());

const byPath = (row: unknown, selector: string) =>
  selector.split('.').reduce<unknown>((value, name) => (value as Record<string, unknown> | undefined)?.[name], row);

/** The rows that Grafana gets. */
async function rowsOf({ url, url_options, root_selector, columns }: Query, { from, to } = RANGE, credential = key) {
  const values: Readonly<Record<string, string>> = {
    'account:percentencode': 'acme',
    '__timeFrom:date:iso': from,
    '__timeTo:date:iso': to,
    '__timeTo:date:YYYY-MM': to.slice(0, 7),
  };
  const filled = (text: string) => text.replace(/\$\{(.*?)\}/g, (macro, name: string) => values[name] ?? macro);
  const params = url_options.params.map(({ key: name, value }) => [name, filled(value)]);
  const response = await api.request(`${filled(url)}?${new URLSearchParams(params)}`, {
    headers: { ...headers, authorization: `Bearer ${credential}` },
  });
  if (response.status !== 200) throw new Error(`${response.status}: ${response.text}`);
  // A path of GJSON is tried first; it would be the path of a member, and none begins so.
  expect(root_selector).toMatch(/^\$/);
  const root: unknown = await jsonata(root_selector).evaluate(response.body);
  const rows: readonly unknown[] = Array.isArray(root) ? [...root] : root === undefined ? [] : [root];
  return rows.map((row) => Object.fromEntries(columns.map(({ selector, text }) => [text, byPath(row, selector)])));
}

function panel(title: string) {
  const found = costs.panels.find((each) => each.title === title);
  if (!found) throw new Error(`there is no panel ${title}`);
  return found;
}
const ask = (title: string) => rowsOf(panel(title).targets[0]);
const metrics = (groupBy = '', range = RANGE) =>
  readMetrics(api, 'acme', key, { startTime: range.from, endTime: range.to, ...(groupBy && { groupBy }) });

describe('the dashboard', () => {
  it('the variable lists the accounts of the key', async () => {
    const [variable] = costs.templating.list;
    expect(await rowsOf(variable.query.infinityQuery)).toEqual([{ __text: 'acme', __value: 'acme' }]);
  });

  it('the panel of the cost has the total', async () => {
    const { summary } = await metrics();
    expect(summary.totalCost).toBeCloseTo(75.015002000001, 9);
    expect(await ask('Cost')).toEqual([{ Cost: summary.totalCost }]);
  });

  it('the panel of two months has the whole of the last one, and this one so far', async () => {
    const { targets, timeFrom } = panel('This month to date against last month');
    expect(timeFrom).toBe('now-1M/M');
    const range = { from: LAST_MONTH, to: RANGE.to };
    expect(await rowsOf(targets[0], range)).toEqual([
      { Month: '2025-10', Cost: 32 },
      { Month: '2025-11', Cost: 75.015002000001 },
    ]);
  });

  it('the panel of resource types has every bar of every type, in the order of time', async () => {
    const { data } = await metrics('resource_type');
    const points = data.flatMap(({ resourceType, timeseries }) =>
      timeseries.map(({ timestamp, cost }) => ({ Time: timestamp, 'Resource type': resourceType, Cost: cost })),
    );
    const rows = await ask('Cost by resource type');
    expect(rows).toHaveLength(5 * 31);
    expect(new Set(rows.map((row) => JSON.stringify(row)))).toEqual(new Set(points.map((row) => JSON.stringify(row))));
    const times = rows.map(({ Time }) => String(Time));
    expect(times).toEqual([...times].sort());
  });

  it('the panel of resources has the costliest hundred', async () => {
    const { data } = await metrics('resource_name');
    const rows = await ask('Cost by resource');
    expect(rows).toHaveLength(100);
    expect(rows[0]).toEqual({ Resource: 'support', 'Resource type': 'agent', Cost: 40.000002 });
    expect(rows.map(({ Cost }) => Cost)).toEqual(data.map(({ summary }) => summary.cost));
  });

  it('the panel of workspaces has each of them', async () => {
    const { data } = await metrics('workspace');
    expect(await ask('Cost by workspace')).toEqual(
      data.map(({ workspace, summary }) => ({ Workspace: workspace, Cost: summary.cost })),
    );
  });

  it('the panel of all accounts has every account for the key of an operator, which is enough for the others too', async () => {
    const operator = await api.key('platform', 'operator');
    const rows = await rowsOf(panel('Cost of all accounts').targets[0], RANGE, operator);
    expect(rows).toEqual([
      { Account: 'acme', Cost: 75.015002000001 },
      { Account: 'initech', Cost: 7 },
    ]);
    for (const { targets } of costs.panels) await rowsOf(targets[0], RANGE, operator);
  });

  it('a panel has no rows where nothing was used', async () => {
    const idle = { from: '2024-01-01T00:00:00Z', to: '2024-01-02T00:00:00Z' };
    const [types, resources] = ['Cost by resource type', 'Cost by resource'].map((title) => panel(title).targets[0]);
    expect(types && (await rowsOf(types, idle))).toEqual([]);
    expect(resources && (await rowsOf(resources, idle))).toEqual([]);
  });

  it('a key of a member is enough for every panel but that of workspaces', async () => {
    const member = await api.key('acme', 'member');
    for (const { title, targets } of costs.panels) {
      if (title === 'Cost by workspace') continue;
      await rowsOf(targets[0], RANGE, member);
    }
    const refused = rowsOf(panel('Cost by workspace').targets[0], RANGE, member);
    await expect(refused).rejects.toThrow('Access denied');
  });
});

it('the alert rule asks for the cost of the account since the start of the month', async () => {
  const { groups } = alerting.parse(parseYaml(await fileOf('provisioning/alerting/meterline.yaml')));
  const [{ rules }] = groups;
  const model = query.parse(rules[0].data[0]?.model);
  expect(await rowsOf(model, { from: '2025-11-15T11:00:00Z', to: RANGE.to })).toEqual([{ Cost: 75.015002000001 }]);
});
