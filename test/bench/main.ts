/**
 * Measures how fast Meterline is, compared with its limits and its goals:
 *
 *   npm run bench -- [--events 20000000] [--only NAME] [--out FILE]
 *
 * It starts its own servers and services in a new folder and removes all of them at the end, also on Ctrl-C.
 */
import { mkdir, writeFile } from 'node:fs/promises';
import { dirname, join, resolve } from 'node:path';
import { parseArgs } from 'node:util';
import { abortable } from '@meterline/catalog';
import { z } from 'zod';
import { alerts } from './alerts.js';
import { load, neighbours } from './clients.js';
import { collector } from './collector.js';
import { collectorNeighbours } from './collector-neighbours.js';
import { allAccounts, dashboard, openHour } from './dashboard.js';
import { describeMachine, figure, formatReport, limit, type Report } from './figure.js';
import { type Bench, Fixture } from './fixture.js';
import { growth } from './growth.js';
import { freshness, ingestBatches, ingestSingles } from './ingest.js';
import { late, sealing } from './rollups.js';
import { tenants } from './tenants.js';

/** The load comes late: it adds unsealed events to the large data set. */
const BENCHES: readonly Bench[] = [
  ...[collector, collectorNeighbours, tenants, ingestBatches, ingestSingles, freshness, late, sealing, openHour],
  ...[allAccounts, alerts, growth, dashboard, load, neighbours],
];
const MIN_EVENTS = 100_000;
const MAX_RESIDENT_MB = 300;

const started = performance.now();
const say = (line: string) =>
  console.log(`${String(Math.round((performance.now() - started) / 1000)).padStart(4)} s  ${line}`);
const { events, only, out, dataDir } = readOptions();

const stop = new AbortController();
const interrupted = () => {
  if (!stop.signal.aborted) say('stopping…');
  stop.abort();
};
for (const end of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.on(end, interrupted);

const machine = describeMachine();
const startedAt = new Date().toISOString();
const fixture = await Fixture.open(dataDir, say);
const figures: Report['figures'][number][] = [];
try {
  for (const bench of BENCHES.filter(({ name }) => only === undefined || only === name)) {
    say(bench.name);
    // At once when interrupted: pending calls wait for servers that are about to stop.
    const measured = await abortable(bench.run({ fixture, events, signal: stop.signal }), stop.signal);
    figures.push(...measured.map((each) => ({ bench: bench.name, ...each })));
  }
  for (const [service, peak] of fixture.peaks) {
    const goal = service === 'collector' ? undefined : limit('≤', MAX_RESIDENT_MB, 'MB');
    figures.push({ bench: 'memory', ...figure(`resident memory of ${service} at its peak`, 'MB', [peak], { goal }) });
  }
} catch (error) {
  if (!stop.signal.aborted) throw error;
} finally {
  say('cleaning up');
  await fixture.close();
}
// After an interruption, pending calls may still wait for servers that are gone.
if (stop.signal.aborted) process.exit(130);
const report = { machine, events, startedAt, seconds: (performance.now() - started) / 1000, figures };
await mkdir(dirname(out), { recursive: true });
await writeFile(out, `${JSON.stringify(report, null, 2)}\n`);
console.log(`\n${formatReport(report)}\n\nEvery run: ${out}`);

/** Ends the process when the command line is wrong. */
function readOptions() {
  const names = BENCHES.map(({ name }) => name);
  const schema = z.object({
    events: z.coerce.number().int().min(MIN_EVENTS).default(20_000_000),
    only: z.enum(names).optional(),
    out: z.string().optional(),
  });
  const text = { type: 'string' } as const;
  try {
    const options = schema.parse(parseArgs({ options: { events: text, only: text, out: text } }).values);
    const folder = resolve(process.env.METERLINE_DATA_DIR ?? '.meterline');
    return { ...options, out: resolve(options.out ?? join(folder, 'bench.json')), dataDir: folder };
  } catch {
    const usage = `usage: npm run bench -- [--events N (at least ${MIN_EVENTS})] [--only ${names.join('|')}] [--out FILE]`;
    console.error(usage);
    process.exit(2);
  }
}
