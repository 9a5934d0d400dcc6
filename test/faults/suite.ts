/** Plays faults of the table: several at a time, each lane on servers of its own. */
import { inspect } from 'node:util';
import { isClean } from './compare.js';
import { Fixture } from './fixture.js';
import { SeededRandom } from './seeded-random.js';
import type { FinishedRun, RunOptions, RunResult } from './stream-run.js';
import type { PlayedRow } from './table.js';

const RUN_WITHIN_MS = 15 * 60_000;

export interface SuiteOptions {
  /** Over all faults. */
  readonly rounds: number;
  readonly seed: number;
  readonly lanes: number;
  readonly brief: boolean;
  readonly signal: AbortSignal;
  /** Is told each result when it is there. */
  readonly say: (result: RunResult) => void;
}

type Plan = { readonly fault: PlayedRow; readonly seed: number }[];

/**
 * Each fault equally often and at least once, several at a time. Run n of a fault has the seed `seed + n`, with which it can be repeated.
 * @throws the abort's reason, after every process has ended and every file is removed
 */
export async function playAll(faults: readonly PlayedRow[], options: SuiteOptions): Promise<RunResult[]> {
  const { rounds, seed, lanes } = options;
  const each = Math.max(1, Math.round(rounds / faults.length));
  const plan = faults.flatMap((fault) => Array.from({ length: each }, (_, n) => ({ fault, seed: seed + n })));
  const shuffled = new SeededRandom(seed).shuffled(plan);
  // A small disk is one lane's.
  const onDisk = shuffled.filter(({ fault }) => fault.onSmallDisk);
  const others = shuffled.filter(({ fault }) => !fault.onSmallDisk);
  const most = Math.min(lanes, others.length);
  const ended = await Promise.allSettled([
    playLane(onDisk, true, options),
    ...Array.from({ length: most }, () => playLane(others, false, options)),
  ]);
  return ended.flatMap((lane) => {
    if (lane.status === 'rejected') throw lane.reason;
    return lane.value;
  });
}

/** Plays runs from the plan until none is left. Servers are replaced when a run broke off. */
async function playLane(plan: Plan, onSmallDisk: boolean, options: SuiteOptions): Promise<RunResult[]> {
  const results: RunResult[] = [];
  while (plan.length > 0) {
    options.signal.throwIfAborted();
    const fixture = await Fixture.open({ onSmallDisk });
    try {
      await fixture.startQuery();
      results.push(...(await playOnFixture(fixture, plan, options)));
    } finally {
      await fixture.close();
    }
  }
  return results;
}

async function playOnFixture(
  fixture: Fixture,
  plan: Plan,
  { brief, signal: stop, say }: SuiteOptions,
): Promise<RunResult[]> {
  const finished: FinishedRun[] = [];
  let brokenOff: RunResult | undefined;
  while (!brokenOff) {
    const next = plan.shift();
    if (!next) break;
    const { play, name } = next.fault;
    const run: RunOptions = { fault: name, seed: next.seed, brief };
    const signal = AbortSignal.any([stop, AbortSignal.timeout(RUN_WITHIN_MS)]);
    try {
      const played = await play(fixture, run, signal);
      finished.push(played);
      say(played.result);
    } catch (error) {
      stop.throwIfAborted();
      const nothing = { events: 0, lost: [], doubled: [], stuck: 0, recoveryMs: 0 };
      brokenOff = { fault: name, seed: next.seed, ...nothing, complaints: [`broke off: ${inspect(error)}`] };
      say(brokenOff);
    }
  }
  const results: RunResult[] = [];
  for (const run of finished) results.push(await laterResult(run));
  return brokenOff ? [...results, brokenOff] : results;
}

/** Compares a clean run once more: later runs on the same servers must not have changed its events. */
async function laterResult({ result, recheck }: FinishedRun): Promise<RunResult> {
  if (!isClean(result)) return result;
  try {
    const later = await recheck();
    return isClean(later) ? result : { ...result, ...later, complaints: [...later.complaints, 'was right at first'] };
  } catch (error) {
    return { ...result, complaints: [`could not be compared again: ${inspect(error)}`] };
  }
}

export function hasPassed(result: RunResult): boolean {
  return isClean(result) && result.stuck === 0;
}
