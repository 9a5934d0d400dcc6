/**
 * Measures how fast Meterline is, compared with its limits and its goals:
 *
 *   npm run bench -- [--events 20000000] [--only NAME] [--out FILE]
 *
 * It starts its own servers and services in a new folder and removes all of them at the end, also on Ctrl-C.
 */
import type { Bench } from './bench.js';
import { collector } from './collector.js';
import { dashboard } from './dashboard.js';
import { below, type Figure } from './figure.js';
import { freshness } from './freshness.js';
import { growth } from './growth.js';
import { ingestBatches, ingestSingles } from './ingest.js';
import { late } from './late.js';
import { load } from './load.js';
import { describeMachine } from './machine.js';
import { neighbours } from './neighbours.js';
import { openHour } from './open-hour.js';
import { readOptions, UsageError } from './options.js';
import { formatReport, writeReport } from './report.js';
import { sealing } from './sealing.js';
import { Site } from './site.js';

/** The load comes late: it adds unsealed events to the large data set. */
const BENCHES: readonly Bench[] = [
  collector,
  ingestBatches,
  ingestSingles,
  freshness,
  late,
  sealing,
  openHour,
  growth,
  dashboard,
  load,
  neighbours,
];
const MAX_RESIDENT_MB = 300;

const INTERRUPTED = 130;
const MISUSED = 2;

const started = performance.now();
const say = (line: string) =>
  console.log(`${((performance.now() - started) / 1000).toFixed(0).padStart(4)} s  ${line}`);

const stop = new AbortController();
const interrupted = () => {
  if (!stop.signal.aborted) say('stopping…');
  stop.abort();
};
for (const end of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.on(end, interrupted);

try {
  process.exitCode = await main();
} catch (error) {
  // After an interruption, pending calls may still wait for servers that are gone.
  if (stop.signal.aborted) process.exit(INTERRUPTED);
  if (!(error instanceof UsageError)) throw error;
  console.error(error.message);
  process.exitCode = MISUSED;
}

async function main(): Promise<number> {
  const names = BENCHES.map(({ name }) => name);
  const options = readOptions(process.argv.slice(2), names);
  const machine = describeMachine();
  const startedAt = new Date().toISOString();
  const site = await Site.open(options.dataDir, say);
  const figures: (Figure & { readonly bench: string })[] = [];
  try {
    const chosen = BENCHES.filter(({ name }) => options.only === undefined || options.only === name);
    for (const bench of chosen) {
      say(bench.name);
      const measured = await unlessStopped(bench.run({ site, options, signal: stop.signal }));
      figures.push(...measured.map((figure) => ({ bench: bench.name, ...figure })));
    }
    for (const [service, bytes] of Object.entries(site.peaks)) figures.push(peakOf(service, bytes));
  } finally {
    say('cleaning up');
    await site.close();
  }
  const seconds = (performance.now() - started) / 1000;
  const report = { machine, events: options.events, startedAt, seconds, figures };
  await writeReport(options.out, report);
  console.log(`\n${formatReport(report)}\n\nEvery run: ${options.out}`);
  return 0;
}

function peakOf(service: string, bytes: number) {
  const value = bytes / 2 ** 20;
  const what = `resident memory of ${service} at its peak in this run`;
  return { bench: 'memory', what, value, unit: 'MB', reach: below(value, MAX_RESIDENT_MB, 'MB') } as const;
}

/** Rejects at once when interrupted, without waiting for pending calls: their servers are about to stop. */
function unlessStopped<T>(work: Promise<T>): Promise<T> {
  const { signal } = stop;
  return new Promise((resolve, reject) => {
    const giveUp = () => reject(signal.reason);
    if (signal.aborted) giveUp();
    signal.addEventListener('abort', giveUp, { once: true });
    work.then(resolve, reject).finally(() => signal.removeEventListener('abort', giveUp));
  });
}
