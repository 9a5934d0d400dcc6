/**
 * Writes docs/observability/metrics.md from the code that registers the metrics of the services. Run it after `tsc -b`. With `--check` it
 * writes nothing and fails where the file says something else.
 */
import { readFile, writeFile } from 'node:fs/promises';
import { fileURLToPath } from 'node:url';
import { refusalCounter, requestMetrics } from '@meterline/api';
import { createRegistry, outageGauge, statementMetrics } from '@meterline/service/metrics';
import { createAlertMetrics } from '../services/alerts/dist/metrics.js';
import { bytesGauge, createEventMetrics } from '../services/collector/dist/metrics.js';
import { createIngestMetrics, registerWorkerGauges } from '../services/ingest/dist/metrics.js';
import { permitGauges } from '../services/query/dist/admission/admission.js';
import { measuredCache } from '../services/query/dist/metrics/response-cache.js';

const FILE = new URL('../docs/observability/metrics.md', import.meta.url);
/** What each service registers. Nothing is read from the gauges, so what they would read need not be there. */
const SERVICES = {
  ingest: (registry) => {
    outageGauge(registry, {});
    statementMetrics(registry);
    createIngestMetrics(registry);
    registerWorkerGauges(registry, {});
  },
  query: (registry) => {
    outageGauge(registry, {});
    statementMetrics(registry);
    requestMetrics(registry);
    refusalCounter(registry);
    permitGauges(registry, {});
    measuredCache(registry, 0);
  },
  collector: (registry) => {
    outageGauge(registry, {});
    requestMetrics(registry);
    refusalCounter(registry);
    createEventMetrics(registry);
    bytesGauge(registry, {});
  },
  alerts: (registry) => {
    outageGauge(registry, {});
    statementMetrics(registry);
    createAlertMetrics(registry, {});
  },
};

/** By name: the metric, and the services that have it. */
const metrics = new Map();
for (const [service, register] of Object.entries(SERVICES)) {
  const registry = createRegistry(service);
  register(registry);
  for (const metric of registry.getMetricsAsArray()) {
    if (!metric.name.startsWith('meterline_')) continue;
    metrics.set(metric.name, { metric, services: [...(metrics.get(metric.name)?.services ?? []), service] });
  }
}

const rows = [...metrics.values()].map(({ metric: { name, type, labelNames, help }, services }) => {
  const labels = labelNames.map((label) => `\`${label}\``).join(', ');
  const having = services.length === Object.keys(SERVICES).length ? 'all' : services.join(', ');
  return `| \`${name}\` | ${type} | ${labels} | ${having} | ${help} |`;
});

const text = `# Metrics

\`node scripts/write-metrics.mjs\` writes this page from the code. Every label has a fixed set of values: none holds an account, a workspace, an
event or a path. The metrics of the process (\`process_…\`, \`nodejs_…\`) come from prom-client. [Monitoring](README.md) says how to use them.

| Name | Kind | Labels | Services | What it says |
|---|---|---|---|---|
${rows.join('\n')}
`;

if (process.argv.includes('--check')) {
  if ((await readFile(FILE, 'utf8').catch(() => '')) !== text) {
    throw new Error(`${fileURLToPath(FILE)} is not what the code says: run node scripts/write-metrics.mjs`);
  }
} else {
  await writeFile(FILE, text);
}
