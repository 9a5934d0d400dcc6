/**
 * Steady traffic for a long time, while processes are killed: `npm run test:soak -- [--minutes 60] [--rate 5000] [--seed S]`.
 *
 * Exits with 0 only if every accepted event counts exactly once, the rollups agree with the events, and, in runs of at least half an
 * hour, no process's memory grows by more than 2 % in an hour after the first ten minutes, by more than twice the standard error.
 * Ctrl-C ends everything.
 */
import { setMaxListeners } from 'node:events';
import { parseArgs } from 'node:util';
import { Fixture } from '../faults/fixture.js';
import { SeededRandom } from '../faults/stream.js';
import { auditRepaired } from '../faults/stream-run.js';
import { markdownTable } from '../harness/programs.js';
import { holdsWithin, openJobs, pause } from '../harness/queue.js';
import { select } from '../harness/stack.js';
import { Deployment, growth, LASTING, type Row, watch } from './deployment.js';
import { type SoakAccount, Traffic } from './traffic.js';

const ACCOUNTS = 40;
const WARM_UP_MINUTES = 10;
const JUDGED_FROM_MINUTES = 30;
const MOST_GROWTH_PERCENT = 2;
/** What no process may hold, in a run of any length. */
const MOST_MIB = 2_048;
const DRAINED_WITHIN_MS = 600_000;
const RESPONSE_TIMEOUT_MS = 120_000;
const INJECT_EVERY_MS = 120_000;
/** For each minute of a shorter run, so that it has nine injections. */
const INJECT_IN_SHORT_MS = 6_000;

const { values: options } = parseArgs({
  options: {
    minutes: { type: 'string', default: '60' },
    rate: { type: 'string', default: '5000' },
    seed: { type: 'string', default: String(Date.now() % 1_000_000) },
  },
});
const [minutes, rate, seed] = [Number(options.minutes), Number(options.rate), Number(options.seed)];
if (![minutes, rate].every((number) => number > 0) || !Number.isSafeInteger(seed)) {
  console.error('usage: npm run test:soak -- [--minutes N] [--rate EVENTS_PER_SECOND] [--seed S]');
  process.exit(2);
}

const stop = new AbortController();
for (const end of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.on(end, () => stop.abort());
const { signal } = stop;
const started = Date.now();
const say = (what: string) => console.log(`${((Date.now() - started) / 60_000).toFixed(1)} min: ${what}`);

console.log(`seed ${seed}`);
const fixture = await Fixture.open();
const { key, queue, warehouse } = fixture.product;
try {
  const failures = await soak();
  for (const failure of failures) console.log(`✗ ${failure}`);
  process.exitCode = failures.length === 0 ? 0 : 1;
} catch (error) {
  if (!signal.aborted) throw error;
  process.exitCode = 130;
} finally {
  await fixture.close();
}
process.exit();

/** @returns what is wrong */
async function soak(): Promise<string[]> {
  const deployment = new Deployment(fixture, seed, Date.now() + minutes * 60_000 + DRAINED_WITHIN_MS);
  await deployment.start();
  const accounts: SoakAccount[] = [];
  for (let n = 0; n < ACCOUNTS; n += 1) {
    const id = `soak-${n}`;
    accounts.push({ id, emitterKey: await key(id, 'emitter'), key: await key(id) });
  }
  const traffic = new Traffic(new SeededRandom(seed), accounts, deployment, fixture.product.env, signal);
  const rows: Row[] = [];
  const onRow = (row: Row) => {
    rows.push(row);
    say(JSON.stringify(row));
  };
  const ended = new AbortController();
  const over = AbortSignal.any([ended.signal, signal]);
  setMaxListeners(0, over, signal);
  const untilOver = (work: Promise<void>) => work.catch((error) => (over.aborted ? undefined : Promise.reject(error)));
  try {
    await Promise.all([
      pause(minutes * 60_000, signal).then(() => ended.abort()),
      traffic.send(rate, over),
      traffic.look(over),
      untilOver(watch(deployment, fixture, () => traffic.sent, onRow, over)),
      untilOver(deployment.inject(Math.min(INJECT_EVERY_MS, minutes * INJECT_IN_SHORT_MS), over, say)),
    ]);
    say(`${traffic.sent} events are sent, ${Math.round(traffic.sent / minutes / 60)} a second`);
    const isDrained = await holdsWithin(DRAINED_WITHIN_MS, signal, async () => (await openJobs(queue)) === 0);
    say('the queue is empty');
    const wrong = await inexact(traffic);
    const differences = await auditRepaired(warehouse, undefined);
    report(rows);
    return [...(isDrained ? [] : ['jobs are left']), ...traffic.complaints, ...wrong, ...differences, ...grown(rows)];
  } finally {
    traffic.disconnect();
  }
}

/** Compares every figure of every account, and the rejected events. @returns what differs */
async function inexact(traffic: Traffic): Promise<string[]> {
  const { accounts, ledger } = traffic;
  const window = 'startTime=2020-01-01T00:00:00Z&endTime=2040-01-01T00:00:00Z&resolution=monthly';
  const differences: string[] = [];
  for (const { id, key } of accounts) {
    let body: string | undefined;
    await holdsWithin(RESPONSE_TIMEOUT_MS, signal, async () => {
      body = await traffic.ask(key, `/v0/accounts/${id}/metrics?${window}&groupBy=billing_dimension`);
      return body !== undefined;
    });
    differences.push(...ledger.differences(id, body ?? ''));
  }
  const [kept] = await select<{ events: string }>(
    warehouse,
    "SELECT uniqExact(extract(payload, 'bad-[0-9a-f-]{36}')) AS events FROM rejected_events",
  );
  if (Number(kept?.events) !== ledger.rejected)
    differences.push(`${kept?.events} of ${ledger.rejected} bad events kept`);
  say(`${ledger.events} events must count, ${ledger.rejected} be rejected; ${differences.length} differences`);
  return differences;
}

function settled(rows: readonly Row[]): readonly Row[] {
  return rows.filter(({ minute = 0 }) => minute > WARM_UP_MINUTES);
}

function grew(rows: readonly Row[], column: string): string {
  const { percent, error } = growth(settled(rows), column);
  return `${percent.toFixed(1)} ± ${error.toFixed(1)}`;
}

/** Prints what grows as a Markdown table. */
function report(rows: readonly Row[]): void {
  const figures = Object.keys(rows[0] ?? {}).slice(1);
  const grows = figures.map((column) => {
    const each = settled(rows).map(({ [column]: figure = 0 }) => figure);
    return [column, each[0] ?? '', each.at(-1) ?? '', Math.max(...each), grew(rows, column)];
  });
  const titles = ['figure', `after ${WARM_UP_MINUTES} min`, 'at the end', 'most', '% an hour'];
  if (settled(rows).length > 1) console.log(`\n${markdownTable(titles, grows)}`);
}

/** Memory that grows, or is too much in a run of any length. */
function grown(rows: readonly Row[]): string[] {
  return LASTING.map((name) => `${name}, MiB`).flatMap((column) => {
    const most = Math.max(...rows.map(({ [column]: figure = 0 }) => figure));
    const { percent, error } = growth(settled(rows), column);
    const grows = minutes >= JUDGED_FROM_MINUTES && percent - 2 * error > MOST_GROWTH_PERCENT;
    return [
      ...(most > MOST_MIB ? [`${column}: ${most}`] : []),
      ...(grows ? [`${column}: grows by ${grew(rows, column)} % in an hour`] : []),
    ];
  });
}
