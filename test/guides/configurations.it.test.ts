/**
 * The requests that the configurations of docs/guides/connectors.md and of grafana/ lead to. Redpanda Connect, Vector and Grafana are not run.
 * Grafana's Infinity data source sends a query and evaluates its selector as here. Source: grafana/grafana-infinity-datasource, pkg/infinity.
 */
import { readFile } from 'node:fs/promises';
import { afterAll, beforeAll, expect, it } from '@jest/globals';
import { eventIdOf } from '@meterline/collector';
import type { KeyRole } from '@meterline/service/access';
import jsonata from 'jsonata';
import { parse as parseYaml } from 'yaml';
import { z } from 'zod';
import { ACME } from '../browser/acme.js';
import { NOW, readMetrics, startApi, type TestApi } from '../harness/api.js';
import { type CollectorFixture, event as collectorEvent, startCollectorFixture } from '../harness/collector.js';
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
  // The data source tries a path of GJSON first, which never begins so.
  root_selector: z.string().startsWith('$'),
  columns: z.array(z.object({ selector: z.string(), text: z.string() })),
});
const dashboard = z.object({
  templating: z.object({ list: z.tuple([z.object({ query: z.object({ infinityQuery: query }) })]) }),
  panels: z.array(z.object({ title: z.string(), timeFrom: z.string().optional(), targets: z.tuple([query]) })),
});
const dataSource = z.object({
  jsonData: z.object({ httpHeaderName1: z.string(), httpHeaderName2: z.string() }),
  secureJsonData: z.object({ httpHeaderValue1: z.string(), httpHeaderValue2: z.string() }),
});

const fileOf = (path: string) => readFile(new URL(`../../${path}`, import.meta.url), 'utf8');
const { templating, panels } = dashboard.parse(JSON.parse(await fileOf('grafana/dashboards/costs.json')));
const { jsonData, secureJsonData } = dataSource.parse(
  parseYaml(await fileOf('grafana/provisioning/datasources/meterline.yaml')).datasources[0],
);
const alerting = parseYaml(await fileOf('grafana/provisioning/alerting/meterline.yaml'));
const guide = await fileOf('docs/guides/connectors.md');
const [{ input, pipeline }, ...blocks] = [...guide.matchAll(/^```yaml\n(.*?)^```$/gms)].map(([, text = '']) =>
  parseYaml(text),
);
const { http } = pipeline.processors[3].branch.processors[0];
const vector = blocks.at(-1).sinks.meterline;

let api: TestApi;
let collector: CollectorFixture;
beforeAll(async () => {
  [api, collector] = await Promise.all([startApi(), startCollectorFixture()]);
  await api.seed([...ACME, event({ accountId: 'initech', cost: '7', at: '2025-11-14T09:00:00Z' })]);
});
afterAll(() => Promise.all([api.stop(), collector.close()]));

/** The dashboard's range; and what `now-1M/M` means at its end. */
const RANGE = { from: '2025-10-16T12:00:00.500Z', to: NOW.toISOString() };
const FROM_LAST_MONTH = { ...RANGE, from: '2025-10-01T00:00:00Z' };

/** Replaces macros and variables, as Grafana and the connectors do. */
function filled(text: string, values: Readonly<Record<string, string>>): string {
  return text.replace(/\$\{(.*?)\}/g, (macro, name: string) => values[name] ?? macro);
}

/** The rows that Grafana gets. */
async function rowsOf(each: z.output<typeof query>, key: string, { from, to } = RANGE): Promise<unknown[]> {
  const macros = {
    ...{ 'account:percentencode': 'acme', '__timeFrom:date:iso': from, '__timeTo:date:iso': to },
    ...{ '__timeTo:date:YYYY-MM': to.slice(0, 7), '__timeTo:date:YYYY-MM-DD': to.slice(0, 10) },
  };
  const params = each.url_options.params.map(({ key: name, value }) => [name, filled(value, macros)]);
  const response = await api.request(`${filled(each.url, macros)}?${new URLSearchParams(params)}`, {
    headers: {
      [jsonData.httpHeaderName1]: secureJsonData.httpHeaderValue1,
      [jsonData.httpHeaderName2]: secureJsonData.httpHeaderValue2,
      authorization: `Bearer ${key}`,
    },
  });
  if (response.status !== 200) throw new Error(`${response.status}: ${response.text}`);
  const root: unknown = await jsonata(each.root_selector).evaluate(response.body);
  const rows: unknown[] = root === undefined ? [] : [root].flat();
  const columns = each.columns.map(({ selector, text }) => [text, jsonata(selector)] as const);
  return Promise.all(
    rows.map(async (row) =>
      Object.fromEntries(await Promise.all(columns.map(async ([text, cell]) => [text, await cell.evaluate(row)]))),
    ),
  );
}

const MONTHS = [
  { Month: '2025-10', Cost: 32 },
  { Month: '2025-11', Cost: 75.015002000001 },
];
const ACCOUNTS = [
  { Account: 'acme', Cost: 75.015002000001 },
  { Account: 'initech', Cost: 7 },
];

async function groups(groupBy: string) {
  const range = { startTime: RANGE.from, endTime: RANGE.to };
  return (await readMetrics(api, 'acme', await api.key('acme'), { ...range, groupBy })).data;
}

const PANELS: readonly (readonly [title: string, role: KeyRole, expected: () => Promise<readonly unknown[]>])[] = [
  ['Cost', 'member', async () => [{ Cost: 75.015002000001 }]],
  ['This month to date against last month', 'member', async () => MONTHS],
  [
    'Cost by resource type',
    'member',
    async () => {
      const points = (await groups('resource_type')).flatMap(({ resourceType, timeseries }) =>
        timeseries.map(({ timestamp, cost }) => ({ Time: timestamp, 'Resource type': resourceType, Cost: cost })),
      );
      return points.sort((a, b) => a.Time.localeCompare(b.Time));
    },
  ],
  [
    'Cost by resource',
    'member',
    async () =>
      (await groups('resource_name,resource_type')).map(({ resourceName, resourceType, summary }) => ({
        ...{ Resource: resourceName, 'Resource type': resourceType, Cost: summary.cost },
      })),
  ],
  [
    'Cost by workspace',
    'admin',
    async () => (await groups('workspace')).map((each) => ({ Workspace: each.workspace, Cost: each.summary.cost })),
  ],
  ['Cost of all accounts', 'operator', async () => ACCOUNTS],
];

it.each(PANELS)(
  'the panel "%s" has the figures of the API with the key of role %s, and of an operator',
  async (title, role, expected) => {
    const panel = panels.find((each) => each.title === title);
    if (!panel) throw new Error(`there is no panel ${title}`);
    const range = panel.timeFrom === 'now-1M/M' ? FROM_LAST_MONTH : RANGE;
    const rows = await expected();
    expect(rows.length).toBeGreaterThan(0);
    const account = role === 'operator' ? undefined : 'acme';
    for (const key of [await api.key(account, role), await api.key(undefined, 'operator')]) {
      expect(await rowsOf(panel.targets[0], key, range)).toEqual(rows);
    }
  },
);

it('every panel of Grafana is valid without usage', async () => {
  const key = await api.key(undefined, 'operator');
  const idle = { from: '2024-01-01T00:00:00Z', to: '2024-01-02T00:00:00Z' };
  const rows = await Promise.all(panels.map(({ targets }) => rowsOf(targets[0], key, idle)));
  expect(rows).toEqual([[{ Cost: 0 }], [{ Month: '2024-01', Cost: 0 }], [], [], [], []]);
});

it('the variable of Grafana lists the accounts of the key, and the alert rule has the cost since the start of the month', async () => {
  const key = await api.key('acme', 'member');
  const [variable] = templating.list;
  expect(await rowsOf(variable.query.infinityQuery, key)).toEqual([{ __text: 'acme', __value: 'acme' }]);
  const rule = query.parse(alerting.groups[0].rules[0].data[0].model);
  const lastHour = { ...RANGE, from: '2025-11-15T11:00:00Z' };
  expect(await rowsOf(rule, key, lastHour)).toEqual([{ Cost: 75.015002000001 }]);
  const firstInstant = { ...RANGE, to: '2025-12-01T00:00:00.000Z' };
  expect(await rowsOf(rule, key, firstInstant)).toEqual([{ Cost: 0 }]);
});

it('the batches of Redpanda Connect and of Vector are accepted, with ids that a replay repeats, and no larger than the collector takes', async () => {
  const { account, key } = await collector.account();
  const values = { COLLECTOR_URL: collector.service.url, METERLINE_EMITTER_KEY: key };
  const post = async (url: string, authorization: string, body: unknown) => {
    const headers = { authorization: filled(authorization, values), 'content-type': 'application/json' };
    return (await fetch(filled(url, values), { method: 'POST', headers, body: JSON.stringify(body) })).status;
  };
  const { Authorization, 'Content-Type': type } = http.headers;
  expect(type).toBe('application/json');
  const [, format = ''] =
    /root\.eventId = "(.*?)"\.format\(@kafka_topic, @kafka_partition, @kafka_offset\)/.exec(
      input.broker.inputs[0].processors[0].mapping,
    ) ?? [];
  const position = ['usage', 0, 42];
  const record = { ...collectorEvent(), eventId: format.replace(/%v/g, () => String(position.shift())) };
  expect(await post(http.url, Authorization, { events: [record] })).toBe(202);
  expect(await post(vector.uri, `Bearer ${vector.auth.token}`, [record])).toBe(202);
  const ids = (await collector.takeJobs()).flat().map(({ eventId }) => eventId);
  expect(ids).toEqual(Array.from({ length: 2 }, () => eventIdOf(account, 'kafka/usage/0/42')));
  // A batch in which no event is accepted has results, which the configuration handles.
  expect(http.successful_on).toEqual([await post(http.url, Authorization, { events: [{ ...record, usage: -1 }] })]);
  const { count, byte_size: bytes } = input.broker.batching;
  // A batch may grow by another before it is sent.
  expect(count + pipeline.processors[0].split.size).toBeLessThanOrEqual(5_000);
  expect(2 * bytes).toBeLessThanOrEqual(5 * 1024 * 1024);
  expect(vector.batch.max_events).toBeLessThanOrEqual(5_000);
  expect(vector.batch.max_bytes).toBeLessThanOrEqual(5 * 1024 * 1024);
});
