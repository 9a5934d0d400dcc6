/** The dashboard and the alerts ask for metrics and labels that the services have, in expressions that Prometheus understands. */
import { readdirSync, readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { expect, it } from '@jest/globals';
import { createRegistry } from '@meterline/service/metrics';
import { parser } from '@prometheus-io/lezer-promql';
import { parse as parseYaml } from 'yaml';
import { z } from 'zod';

const document = (name: string) => readFileSync(new URL(`../../docs/observability/${name}`, import.meta.url), 'utf8');

const METRICS = [...document('metrics.md').matchAll(/^\| `(meterline_\w+)` \| (\w+) \| ([^|]*)\|/gm)];
const SUFFIXES: Readonly<Record<string, readonly string[]>> = { histogram: ['_bucket', '_sum', '_count'] };
/** The labels that Prometheus itself adds, and the one of a histogram's buckets. */
const GIVEN_LABELS = ['instance', 'le'];
/** The labels of each series: of our metrics, as metrics.md lists them, and of those of a process. */
const LABELS = new Map<string, readonly string[]>([
  ...createRegistry('query')
    .getMetricsAsArray()
    .map(({ name }) => [name, GIVEN_LABELS] as const),
  ...METRICS.flatMap(([, name = '', kind = '', cell = '']) => {
    const labels = [...GIVEN_LABELS, ...[...cell.matchAll(/`(\w+)`/g)].map(([, label = '']) => label)];
    return (SUFFIXES[kind] ?? ['']).map((suffix) => [`${name}${suffix}`, labels] as const);
  }),
]);

/**
 * @param expression of PromQL
 * @returns the series that it reads
 * @throws Error for a mistake, and for a metric or a label that is not there
 */
function seriesIn(expression: string): string[] {
  const text = expression.replaceAll('$__rate_interval', '5m');
  const series: string[] = [];
  const groupedBy: string[] = [];
  parser.parse(text).iterate({
    enter: ({ type, from, to, node }) => {
      const name = text.slice(from, to);
      if (type.isError) throw new Error(`not an expression from character ${from}: ${expression}`);
      if (type.name === 'Identifier') series.push(name);
      if (type.name !== 'LabelName') return;
      // That of a selector, whose metric comes before it, or of a grouping.
      if (node.parent?.name !== 'UnquotedLabelMatcher') groupedBy.push(name);
      else if (!LABELS.get(series.at(-1) ?? '')?.includes(name)) throw new Error(`no label ${name}: ${expression}`);
    },
  });
  const unknown = series.filter((name) => !LABELS.has(name));
  if (unknown.length > 0 || series.length === 0) throw new Error(`no metric ${unknown.join(', ')}: ${expression}`);
  const foreign = groupedBy.filter((label) => !series.some((name) => LABELS.get(name)?.includes(label)));
  if (foreign.length > 0) throw new Error(`no label ${foreign.join(', ')}: ${expression}`);
  return series;
}

it.each([
  ['sum(rate(meterline_jobs_taken_total[5m])', 'not an expression'],
  ['', 'not an expression'],
  ['time()', 'no metric'],
  ['max(meterline_insert_duration_seconds)', 'no metric'],
  ['sum by (stat) (meterline_queue_jobs)', 'no label stat'],
  ['meterline_queue_jobs{state="failed"} / meterline_consuming{state="failed"}', 'no label state'],
])('an expression with a mistake is rejected: %j', (text, mistake) => {
  expect(() => seriesIn(text)).toThrow(mistake);
});

const panelSchema = z.object({
  title: z.string().min(1),
  datasource: z.object({ uid: z.literal('${' + 'datasource}') }),
  targets: z.array(z.object({ expr: z.string() })).min(1),
});
const dashboardSchema = z.object({
  templating: z.object({ list: z.tuple([z.object({ name: z.literal('datasource'), type: z.literal('datasource') })]) }),
  panels: z.array(z.union([z.object({ type: z.literal('row'), title: z.string().min(1) }), panelSchema])),
});

it('the dashboard shows all of our metrics, and none that does not exist, from a data source that is asked for', () => {
  const text = document('dashboard.json');
  const { panels } = dashboardSchema.parse(JSON.parse(text));
  const targets = panels.flatMap((panel) => ('targets' in panel ? panel.targets : []));
  expect(targets.flatMap(({ expr }) => seriesIn(expr)).length).toBeGreaterThan(20);
  expect(METRICS.map(([, name = '']) => name).filter((name) => !text.includes(name))).toEqual([]);
});

const alertsSchema = z.object({
  groups: z.array(
    z.strictObject({
      name: z.string(),
      rules: z.array(
        z.strictObject({
          alert: z.string().regex(/^Meterline\w+$/),
          expr: z.string(),
          for: z.string().regex(/^\d+m$/),
          labels: z.strictObject({ severity: z.enum(['critical', 'warning', 'info']) }),
          annotations: z.strictObject({ summary: z.string(), description: z.string(), action: z.string().min(20) }),
        }),
      ),
    }),
  ),
});

it('the alerts look at metrics that exist, and each says what to do', () => {
  const rules = alertsSchema.parse(parseYaml(document('alerts.yaml'))).groups.flatMap((group) => group.rules);
  expect(rules.flatMap(({ expr }) => seriesIn(expr)).length).toBeGreaterThan(20);
});

const ROOT = fileURLToPath(new URL('../..', import.meta.url));
/** By what the page calls them. */
const FOLDERS = {
  ...{ ingest: 'services/ingest/src', query: 'services/query/src', collector: 'services/collector/src' },
  ...{ alerts: 'services/alerts/src', http: 'packages/api/src', all: 'packages/service/src' },
};
const LEVELS = 'trace|debug|info|warn|error|fatal';
/** An object literal with the field `event`, in a call of a log or beside one; none lies deeper than one in another. */
const EVENT = new RegExp(String.raw`(?:\.(${LEVELS})\(\s*)?\{\s*event: '(\w+)',?((?:[^{}]|\{[^{}]*\})*)\}`, 'g');
const CALL = new RegExp(String.raw`\blog(?:ger)?\.(?:${LEVELS})\(\s*(\{\s*event: ')?`, 'g');

const sources = Object.entries(FOLDERS).flatMap(([of, folder]) =>
  readdirSync(`${ROOT}${folder}`, { recursive: true, encoding: 'utf8' })
    .filter((name) => /(?<!\.test)\.ts$/.test(name))
    .map((name) => ({ of, file: `${folder}/${name}`, text: readFileSync(`${ROOT}${folder}/${name}`, 'utf8') })),
);

/** The level is undefined where another library decides: the request log. */
const logged = sources.flatMap(({ of, text }) =>
  [...text.matchAll(EVENT)].map(([, level, event = '', rest = '']) => {
    // What the values hold is of no interest.
    const properties = rest.replace(/\{[^{}]*\}|\([^()]*\)/g, '').split(',');
    const names = properties.flatMap((property) => property.trim().split(':')[0] || []);
    const fields = names.filter((name) => !name.startsWith('...'));
    return { event: `${event} of ${of}`, level, fields, isOpen: fields.length < names.length };
  }),
);

const listed = new Map(
  [...readFileSync(`${ROOT}docs/logs.md`, 'utf8').matchAll(/^\| `(\w+)` \| (\w+) \| (\w+) \| (.*?) \|/gm)].map(
    ([, event, level, of, cell = '']) => {
      return [`${event} of ${of}`, { level, fields: [...cell.matchAll(/`(\w+)`/g)].map(([, name]) => name) }];
    },
  ),
);

it('every log call has an event', () => {
  const calls = sources.flatMap(({ file, text }) =>
    [...text.matchAll(CALL)].map(([call, event]) => ({ file, call, event })),
  );
  expect(calls.length).toBeGreaterThan(30);
  expect(calls.filter(({ event }) => event === undefined)).toEqual([]);
});

it('the page of log events lists every event in the sources, and no others', () => {
  expect([...new Set(logged.map(({ event }) => event))].sort()).toEqual([...listed.keys()].sort());
});

it('the page of log events has the level and the fields of each', () => {
  const differences = logged.filter(({ event, level, fields, isOpen }) => {
    const row = listed.get(event);
    if (!row || (level !== undefined && row.level !== level)) return true;
    return fields.some((field) => !row.fields.includes(field)) || (!isOpen && row.fields.length !== fields.length);
  });
  expect(differences).toEqual([]);
});
