/**
 * Generates files from the code: docs/configuration.md from the schemas of environment variables, docs/observability/metrics.md from the
 * metrics that the services register, and the alert rules for Kubernetes from docs/observability/alerts.yaml. Run this script after `tsc
 * -b`. With `--check`, it writes nothing and fails if a file is out of date.
 */
import { readFile, writeFile } from 'node:fs/promises';
import { denialCounter, requestMetrics } from '@meterline/api';
import { createRegistry, observeStatements, outageGauge } from '@meterline/service/metrics';
import { environment as ofCommand } from '../packages/cli/dist/setting-sources.js';
import { environment as ofStart } from '../packages/local-stack/dist/start/settings.js';
import { environment as alerts, constants as ofAlerts } from '../services/alerts/dist/env.js';
import { createAlertMetrics } from '../services/alerts/dist/metrics.js';
import { environment as collector, constants as ofCollector } from '../services/collector/dist/env.js';
import { createEventMetrics } from '../services/collector/dist/metrics.js';
import { registerWorkerGauges } from '../services/ingest/dist/admin.js';
import { environment as ingest, constants as ofIngest } from '../services/ingest/dist/env.js';
import { createIngestMetrics } from '../services/ingest/dist/metrics.js';
import { permitGauges } from '../services/query/dist/admission/admission.js';
import { constants as ofQuery, environment as query } from '../services/query/dist/env.js';
import { measuredCache } from '../services/query/dist/metrics/response-cache.js';

/** Variables that systems set for all programs. The reference omits them. */
const CONVENTIONS = ['XDG_CONFIG_HOME', 'HOME'];

const command = Object.fromEntries(Object.entries(ofCommand.shape).filter(([name]) => !CONVENTIONS.includes(name)));
const programs = { ingest: ingest.shape, query: query.shape, collector: collector.shape, alerts: alerts.shape };
const others = { meterline: command, 'npm start': ofStart.shape };

/** Variables by name. Each entry has all programs that read the variable, and the schema of the first program that describes it. */
const variables = new Map();
for (const [program, shape] of [...Object.entries(programs), ...Object.entries(others)]) {
  for (const [name, schema] of Object.entries(shape)) {
    const { schema: known, readers = [] } = variables.get(name) ?? {};
    variables.set(name, { schema: known?.description ? known : schema, readers: [...readers, program] });
  }
}
const undescribed = [...variables].filter(([, { schema }]) => !schema.description).map(([name]) => name);
if (undescribed.length > 0) throw new Error(`no description of ${undescribed.join(', ')}`);

const rows = [...variables].map(([name, { schema, readers }]) => {
  const defaults = Object.entries(programs).flatMap(([program, shape]) =>
    name in shape ? [[program, defaultOf(shape[name])]] : [],
  );
  const values = new Set(defaults.map(([, value]) => value));
  const text =
    values.size > 1 ? defaults.map(([program, value]) => `${value} (${program})`).join(', ') : defaultOf(schema);
  return `| \`${name}\` | ${text} | ${readers.map((reader) => (reader === 'npm start' ? '`npm start`' : reader)).join(', ')} | ${schema.description} |`;
});

const constants = Object.entries({
  ingest: ofIngest,
  query: ofQuery,
  collector: ofCollector,
  alerts: ofAlerts,
}).flatMap(([program, shape]) =>
  Object.entries(shape).map(
    ([name, schema]) => `| \`${name}\` | ${program} | ${defaultOf(schema)} | ${schema.description} |`,
  ),
);

const configuration = `# Configuration

Each program reads these ${variables.size} environment variables once, and does not start if a value is invalid. An empty variable counts as not set.
\`node scripts/write-reference.mjs\` writes this page from the code.

| Variable | Default | Read by | Meaning |
|---|---|---|---|
${rows.join('\n')}

OpenTelemetry's variables, such as \`OTEL_EXPORTER_OTLP_ENDPOINT\`, enable [traces](observability/README.md#traces). \`NODE_OPTIONS\` limits the heap of a
process.

## Price book

\`meterline dimensions --example-book\` prints an example. \`amount\` is the price in USD of \`per\` units, both decimal strings. Every dimension needs a
price; \`overrides\` also have an \`accountId\`. Raise \`version\` with every change ([re-pricing](operations.md#re-pricing)).

Give all programs the same book: \`ingest\` prices events with it and registers it in ClickHouse, and \`collector\` validates events with it. \`query\` needs
none: within a minute, it returns the prices of the registered book with the highest version.

## Catalog

\`CATALOG\` names a file with billing dimensions of your platform, which are added to the [built-in ones](concepts.md#event). Resource types and
units may be new:

\`\`\`json
{
  "dimensions": [
    { "billingDimension": "gpu_cluster_runtime_seconds", "resourceType": "gpu_cluster", "unit": "seconds" },
    { "billingDimension": "agent_tool_calls_count", "resourceType": "agent", "unit": "count" }
  ]
}
\`\`\`

- A name is \`<resource type>_<what>_<unit>\`, in lowercase words of at most 64 characters together. Clients that do not know your dimensions take the unit
  from the name.
- Usage in \`count\` must be whole numbers; usage in all other units may have decimals. \`gbs\` means GB-seconds and \`hours\` means hours; a unit of your own is
  shown as it is.
- At most 88 dimensions, so that all dimensions fit on one page of a response.
- The price book must have a price for each of them.

Give all programs the same catalog. \`ingest\` and \`query\` register it in ClickHouse, and do not start if a registered dimension is missing from their file, or
is defined differently. The collector has no access to ClickHouse: as with a price book, **restart the workers first**, then the collector, so that
no event is accepted that the workers reject. Producers and clients need no catalog.

A dimension with events stays forever. To remove one without events, delete it from the file, stop the producers, wait until the queue is empty, stop all services, run
\`meterline catalog remove <dimension>\`, and start them again.

## Constants

| Name | Program | Value | Why |
|---|---|---|---|
${constants.join('\n')}
`;

/** Registers the metrics of each service. Empty objects are enough as sources of the gauges, because the gauges are never read. */
const SERVICES = {
  ingest: (registry) => {
    outageGauge(registry, {});
    observeStatements(registry);
    createIngestMetrics(registry);
    registerWorkerGauges(registry, {}, {});
  },
  query: (registry) => {
    outageGauge(registry, {});
    observeStatements(registry);
    requestMetrics(registry);
    denialCounter(registry);
    permitGauges(registry, {});
    measuredCache(registry, 0);
  },
  collector: (registry) => {
    outageGauge(registry, {});
    requestMetrics(registry);
    denialCounter(registry);
    createEventMetrics(registry, () => 0);
  },
  alerts: (registry) => {
    outageGauge(registry, {});
    observeStatements(registry);
    createAlertMetrics(registry, {});
  },
};

const metrics = new Map();
for (const [service, register] of Object.entries(SERVICES)) {
  const registry = createRegistry(service);
  register(registry);
  for (const metric of registry.getMetricsAsArray()) {
    if (!metric.name.startsWith('meterline_')) continue;
    metrics.set(metric.name, { metric, services: [...(metrics.get(metric.name)?.services ?? []), service] });
  }
}

const metricRows = [...metrics.values()].map(({ metric: { name, type, labelNames, help }, services }) => {
  const labels = labelNames.map((label) => `\`${label}\``).join(', ');
  const having = services.length === Object.keys(SERVICES).length ? 'all' : services.join(', ');
  return `| \`${name}\` | ${type} | ${labels} | ${having} | ${help} |`;
});

const metricsPage = `# Metrics

\`node scripts/write-reference.mjs\` writes this page from the code. Labels have fixed sets of values, never accounts, workspaces, events or paths. The
process metrics (\`process_…\`, \`nodejs_…\`) come from prom-client. [Monitoring](README.md) explains the setup.

| Name | Kind | Labels | Services | Meaning |
|---|---|---|---|---|
${metricRows.join('\n')}
`;

const alertRules = await readFile(new URL('../docs/observability/alerts.yaml', import.meta.url), 'utf8');
const prometheusRule = `# \`node scripts/write-reference.mjs\` writes this file from docs/observability/alerts.yaml.
apiVersion: monitoring.coreos.com/v1
kind: PrometheusRule
metadata:
  name: meterline
  labels: { app.kubernetes.io/name: meterline }
spec:
${alertRules.replace(/^(?=.)/gm, '  ')}`;

const pages = {
  'docs/configuration.md': configuration,
  'docs/observability/metrics.md': metricsPage,
  'deploy/kubernetes/components/monitoring/prometheus-rule.yaml': prometheusRule,
};
for (const [name, text] of Object.entries(pages)) {
  const file = new URL(`../${name}`, import.meta.url);
  if (!process.argv.includes('--check')) await writeFile(file, text);
  else if ((await readFile(file, 'utf8').catch(() => '')) !== text) {
    throw new Error(`${name} is out of date: run node scripts/write-reference.mjs`);
  }
}

function defaultOf(schema) {
  const { data: value } = schema.safeParse(undefined);
  return value === undefined || value === '' || typeof value === 'object' ? '–' : `\`${value}\``;
}
