/**
 * Writes docs/configuration.md from the schemas that read the environment. Run it after `tsc -b`. With `--check` it writes nothing and fails
 * where the file says something else.
 */
import { readFile, writeFile } from 'node:fs/promises';
import { fileURLToPath } from 'node:url';
import { environment as ofCommand } from '../packages/cli/dist/settings.js';
import { environment as ofStart } from '../packages/local-stack/dist/start/settings.js';
import { environment as alerts, constants as ofAlerts } from '../services/alerts/dist/env.js';
import { environment as collector, constants as ofCollector } from '../services/collector/dist/env.js';
import { environment as ingest, constants as ofIngest } from '../services/ingest/dist/env.js';
import { constants as ofQuery, environment as query } from '../services/query/dist/env.js';

const FILE = new URL('../docs/configuration.md', import.meta.url);
/** What terminals and systems set for all programs. */
const CONVENTIONS = ['XDG_CONFIG_HOME', 'HOME', 'NO_COLOR', 'TERM'];

const command = Object.fromEntries(Object.entries(ofCommand.shape).filter(([name]) => !CONVENTIONS.includes(name)));
const programs = { ingest: ingest.shape, query: query.shape, collector: collector.shape, alerts: alerts.shape };
const others = { meterline: command, 'npm start': ofStart.shape };

/** By name: the schema of the first program that describes it, and all programs that read it. */
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

const text = `# Configuration

Each program reads its environment once, and refuses to start on a bad value. A variable that is set to nothing counts as not set.
There are ${variables.size}; \`node scripts/write-configuration.mjs\` writes this page from the schemas that read them.

| Variable | Default | Read by | What it says |
|---|---|---|---|
${rows.join('\n')}

Traces are turned on by the variables of OpenTelemetry, such as \`OTEL_EXPORTER_OTLP_ENDPOINT\` ([traces](observability/README.md#traces)), and
\`NODE_OPTIONS\` bounds the heap of a process.

## Constants

| Name | Program | Value | Why |
|---|---|---|---|
${constants.join('\n')}
`;

/** What applies when nothing is set, as it would be written; a dash for nothing. */
function defaultOf(schema) {
  const { data: value } = schema.safeParse(undefined);
  return value === undefined || value === '' || typeof value === 'object' ? '–' : `\`${value}\``;
}

if (process.argv.includes('--check')) {
  if ((await readFile(FILE, 'utf8').catch(() => '')) !== text) {
    throw new Error(`${fileURLToPath(FILE)} is not what the schemas say: run node scripts/write-configuration.mjs`);
  }
} else {
  await writeFile(FILE, text);
}
