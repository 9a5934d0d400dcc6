/**
 * Injects faults, round after round: `npm run test:faults -- [--rounds 100] [--seed S] [--only fault,fault] [--lanes 4]`.
 *
 * Exits with 0 only if nothing was lost, doubled or stuck. Ctrl-C ends all processes of the run and removes its files.
 * --brief is the short form that `npm test` uses; --json adds the table as one line of JSON.
 */
import { inspect, parseArgs } from 'node:util';
import { markdownTable } from '../harness/table.js';
import { playAlerts } from './alerts.js';
import { isClean } from './compare.js';
import { playProducers } from './producers.js';
import { type FinishedRound, playStream, type RoundOptions, type RoundResult } from './round.js';
import { SeededRandom } from './seeded-random.js';
import { Site } from './site.js';
import { canMountSmallDisk } from './small-disk.js';
import { FAULTS } from './table.js';

const INTERRUPTED = 130;
const ROUND_WITHIN_MS = 15 * 60_000;
const SHOWN_MARKS = 5;

const { values: options } = parseArgs({
  options: {
    rounds: { type: 'string', default: '100' },
    seed: { type: 'string', default: String(Date.now() % 1_000_000) },
    only: { type: 'string' },
    lanes: { type: 'string', default: '4' },
    brief: { type: 'boolean', default: false },
    json: { type: 'boolean', default: false },
  },
});
const only = options.only?.split(',');
const chosen = FAULTS.filter(({ name }) => only === undefined || only.includes(name));
const [rounds, seed, lanes] = [Number(options.rounds), Number(options.seed), Number(options.lanes)];
if (
  chosen.length === 0 ||
  (only && chosen.length < only.length) ||
  ![rounds, seed, lanes].every(Number.isSafeInteger) ||
  lanes < 1
) {
  const names = FAULTS.map(({ name }) => name).join('|');
  console.error(`usage: npm run test:faults -- [--rounds N] [--seed S] [--lanes N] [--only ${names}]`);
  process.exit(2);
}

const stop = new AbortController();
const interrupted = () => {
  if (!stop.signal.aborted) console.log('stopping…');
  stop.abort();
};
// `disconnect`: the test that started this process is gone.
for (const end of ['SIGINT', 'SIGTERM', 'SIGHUP', 'disconnect'] as const) process.on(end, interrupted);
process.channel?.unref();
// The reader of the output may be gone as well; this process must still clean up.
process.stdout.on('error', interrupted);

type Fault = (typeof FAULTS)[number];
type Plan = { readonly fault: Fault; readonly seed: number }[];

const canMount = canMountSmallDisk();
const faults = chosen.filter(({ onSmallDisk }) => canMount || !onSmallDisk);
console.log(`seed ${seed}`);
for (const { name } of chosen.filter((fault) => !faults.includes(fault))) {
  console.log(`– ${name}: skipped, because this user may not mount a file system`);
}
try {
  const results = await playAll();
  const summaries = faults.map(({ name }) =>
    summaryOf(
      results.filter(({ fault }) => fault === name),
      name,
    ),
  );
  const all = summaryOf(results, 'all');
  const titles = ['fault', 'rounds', 'events', 'lost', 'doubled', 'stuck', 'complaints', 'worst recovery'];
  console.log(
    `\n${markdownTable(
      titles,
      [...summaries, all].map((summary) => Object.values(summary)),
    )}`,
  );
  // Printed again, because a round that was right at first and is wrong now appears only here.
  for (const failed of results.filter((result) => !hasPassed(result))) console.log(formatResult(failed));
  if (options.json) console.log(JSON.stringify(summaries));
  process.exitCode = results.every(hasPassed) ? 0 : 1;
} catch (error) {
  if (!stop.signal.aborted) throw error;
  process.exitCode = INTERRUPTED;
}
// Everything is ended by now.
process.exit();

/**
 * Faults by weight, each at least once, several at a time. Round n of a fault has the seed `seed + n`, with which it can be repeated.
 * @throws the abort's reason, after every process has ended and every file is removed
 */
async function playAll(): Promise<RoundResult[]> {
  const weight = faults.reduce((sum, fault) => sum + fault.weight, 0);
  const plan = faults.flatMap((fault) =>
    Array.from({ length: Math.max(1, Math.round((rounds * fault.weight) / weight)) }, (_, n) => ({
      fault,
      seed: seed + n,
    })),
  );
  const shuffled = new SeededRandom(seed).shuffled(plan);
  // A small disk is one lane's.
  const onDisk = shuffled.filter(({ fault }) => fault.onSmallDisk);
  const others = shuffled.filter(({ fault }) => !fault.onSmallDisk);
  const most = Math.min(lanes, others.length);
  const ended = await Promise.allSettled([
    playLane(onDisk, true),
    ...Array.from({ length: most }, () => playLane(others, false)),
  ]);
  return ended.flatMap((lane) => {
    if (lane.status === 'rejected') throw lane.reason;
    return lane.value;
  });
}

/** Plays rounds from the plan until none is left. Servers are replaced when a round broke off. */
async function playLane(plan: Plan, onSmallDisk: boolean): Promise<RoundResult[]> {
  const results: RoundResult[] = [];
  while (plan.length > 0) {
    stop.signal.throwIfAborted();
    const site = await Site.open({ onSmallDisk });
    try {
      await site.startQuery();
      results.push(...(await playOnSite(site, plan)));
    } finally {
      await site.close();
    }
  }
  return results;
}

async function playOnSite(site: Site, plan: Plan): Promise<RoundResult[]> {
  const finished: FinishedRound[] = [];
  let brokenOff: RoundResult | undefined;
  while (!brokenOff) {
    const next = plan.shift();
    if (!next) break;
    const { play, name } = next.fault;
    const round: RoundOptions = { fault: name, seed: next.seed, brief: options.brief };
    const signal = AbortSignal.any([stop.signal, AbortSignal.timeout(ROUND_WITHIN_MS)]);
    try {
      const played =
        'strike' in play
          ? await playStream(site, play, round, signal)
          : 'alerts' in play
            ? await playAlerts(site, play.alerts, round, signal)
            : await playProducers(site, play.producers, round, signal);
      finished.push(played);
      console.log(formatResult(played.result));
    } catch (error) {
      stop.signal.throwIfAborted();
      const nothing = { events: 0, lost: [], doubled: [], stuck: 0, recoveryMs: 0 };
      brokenOff = { fault: name, seed: next.seed, ...nothing, complaints: [`broke off: ${inspect(error)}`] };
      console.log(formatResult(brokenOff));
    }
  }
  const results: RoundResult[] = [];
  for (const round of finished) results.push(await laterResult(round));
  return brokenOff ? [...results, brokenOff] : results;
}

/** Compares a clean round once more: later rounds on the same servers must not have changed its events. */
async function laterResult({ result, recheck }: FinishedRound): Promise<RoundResult> {
  if (!isClean(result)) return result;
  try {
    const later = await recheck();
    return isClean(later) ? result : { ...result, ...later, complaints: [...later.complaints, 'was right at first'] };
  } catch (error) {
    return { ...result, complaints: [`could not be compared again: ${inspect(error)}`] };
  }
}

function hasPassed(result: RoundResult): boolean {
  return isClean(result) && result.stuck === 0;
}

function summaryOf(results: readonly RoundResult[], fault: string) {
  const sum = (figure: (round: RoundResult) => number) => results.reduce((total, round) => total + figure(round), 0);
  return {
    fault,
    rounds: results.length,
    events: sum(({ events }) => events),
    lost: sum(({ lost }) => lost.length),
    doubled: sum(({ doubled }) => doubled.length),
    stuck: sum(({ stuck }) => stuck),
    complaints: sum(({ complaints }) => complaints.length),
    worstRecovery: seconds(Math.max(0, ...results.map(({ recoveryMs }) => recoveryMs))),
  };
}

/** One line for a round, followed by what went wrong. */
function formatResult(result: RoundResult): string {
  const { fault, seed: own, events, lost, doubled, stuck, recoveryMs, complaints } = result;
  if (hasPassed(result)) return `✓ ${fault}, seed ${own}: ${events} events, recovered in ${seconds(recoveryMs)}`;
  const some = (marks: readonly string[]) => `${marks.slice(0, SHOWN_MARKS).join(', ')} of ${marks.length}`;
  return [
    `✗ ${fault}, seed ${own}: ${events} events, ${lost.length} lost, ${doubled.length} doubled, ${stuck} stuck`,
    ...(lost.length > 0 ? [`  lost: ${some(lost)}`] : []),
    ...(doubled.length > 0 ? [`  doubled: ${some(doubled)}`] : []),
    ...complaints.map((complaint) => `  ${complaint}`),
    `  to repeat: npm run test:faults -- --only ${fault} --rounds 1 --seed ${own}${options.brief ? ' --brief' : ''}`,
  ].join('\n');
}

function seconds(ms: number): string {
  return `${(ms / 1_000).toFixed(1)} s`;
}
