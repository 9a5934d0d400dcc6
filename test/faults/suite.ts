/** Plays faults of the table: several at a time, each part on servers of its own. */
import { inspect } from 'node:util';
import { SeededRandom } from '../harness/seeded-random.js';
import { Fixture } from './fixture.js';

export const RUN_WITHIN_MS = 20 * 60_000;

/** What every run has. */
export interface Run {
  readonly fixture: Fixture;
  /** The beginning of the names of its accounts: no other run on its servers has it. */
  readonly name: string;
  readonly random: SeededRandom;
  /** The short form: fewer events, and a fault lasts seconds, where the long form takes up to a minute. */
  readonly brief: boolean;
  readonly signal: AbortSignal;
  /** Reports a defect of the product that the comparison does not find. */
  complain(what: string): void;
}

/** What a run has found. Its comparison can be repeated later. */
export interface Found {
  /** Good and bad events, each counted once however often it was sent. */
  readonly events: number;
  /** Jobs left in the queue. */
  readonly stuck: number;
  /** From the end of the fault until the queue was empty. */
  readonly recoveryMs: number;
  /** What differs from what was sent. */
  readonly differences: readonly string[];
  compare(): Promise<readonly string[]>;
}

export interface Fault {
  readonly name: string;
  /** Victim, how and while, for people. */
  readonly what: string;
  /** Whether the servers' data must lie on a small disk of their own, which can be filled. */
  readonly onSmallDisk: boolean;
  /** The time limit of a run. Default: 20 minutes. */
  readonly withinMs?: number;
  readonly play: (run: Run) => Promise<Found>;
}

export interface RunResult extends Omit<Found, 'compare'> {
  readonly fault: string;
  readonly seed: number;
}

export interface SuiteOptions {
  /** Over all faults. */
  readonly rounds: number;
  readonly seed: number;
  readonly parallel: number;
  readonly brief: boolean;
  readonly signal: AbortSignal;
  /** Is told each result when it is there. */
  readonly say: (result: RunResult) => void;
}

type Plan = { readonly fault: Fault; readonly seed: number }[];

/**
 * Each fault equally often and at least once, several at a time. Run n of a fault has the seed `seed + n`, with which it can be repeated.
 * @throws the abort's reason, after every process has ended and every file is removed
 */
export async function playAll(faults: readonly Fault[], options: SuiteOptions): Promise<RunResult[]> {
  const { rounds, seed, parallel } = options;
  const each = Math.max(1, Math.round(rounds / faults.length));
  const plan = faults.flatMap((fault) => Array.from({ length: each }, (_, n) => ({ fault, seed: seed + n })));
  const shuffled = new SeededRandom(seed).shuffled(plan);
  // A small disk is one part's.
  const onDisk = shuffled.filter(({ fault }) => fault.onSmallDisk);
  const others = shuffled.filter(({ fault }) => !fault.onSmallDisk);
  const most = Math.min(parallel, others.length);
  const ended = await Promise.allSettled([
    playPart(onDisk, true, options),
    ...Array.from({ length: most }, () => playPart(others, false, options)),
  ]);
  return ended.flatMap((part) => {
    if (part.status === 'rejected') throw part.reason;
    return part.value;
  });
}

/** Plays runs from the plan until none is left. Servers are replaced when a run has left something on them. */
async function playPart(plan: Plan, onSmallDisk: boolean, options: SuiteOptions): Promise<RunResult[]> {
  const results: RunResult[] = [];
  while (plan.length > 0) {
    options.signal.throwIfAborted();
    const fixture = await Fixture.open(onSmallDisk);
    try {
      await fixture.startQuery();
      results.push(...(await playOnFixture(fixture, plan, options)));
    } finally {
      await fixture.close();
    }
  }
  return results;
}

type Finished = [result: RunResult, compare: Found['compare'] | undefined];

async function playOnFixture(fixture: Fixture, plan: Plan, options: SuiteOptions): Promise<RunResult[]> {
  const finished: Finished[] = [];
  for (let next = plan.shift(); next; next = plan.shift()) {
    const [result, compare] = await play(fixture, next, options);
    options.say(result);
    finished.push([result, compare]);
    if (!compare || result.stuck > 0) break;
  }
  const results: RunResult[] = [];
  for (const [result, compare] of finished) {
    const later = compare && hasPassed(result) && !options.brief ? await compareLater(compare) : [];
    results.push({ ...result, differences: [...result.differences, ...later] });
  }
  return results;
}

/** @returns nothing to compare later when the run broke off */
async function play(
  fixture: Fixture,
  { fault, seed }: Plan[number],
  { brief, signal: stop }: SuiteOptions,
): Promise<Finished> {
  const complaints: string[] = [];
  const complain = (what: string) => void complaints.push(what);
  const name = `${fault.name}-${seed}`;
  const signal = AbortSignal.any([stop, AbortSignal.timeout(fault.withinMs ?? RUN_WITHIN_MS)]);
  try {
    const run: Run = { fixture, name, random: new SeededRandom(name), brief, signal, complain };
    const { compare, differences, ...found } = await fault.play(run);
    return [{ fault: fault.name, seed, ...found, differences: [...differences, ...complaints] }, compare];
  } catch (error) {
    stop.throwIfAborted();
    const differences = [...complaints, `broke off: ${inspect(error)}`];
    return [{ fault: fault.name, seed, events: 0, stuck: 0, recoveryMs: 0, differences }, undefined];
  }
}

/** In the long form a run that was right is compared once more: later runs on the same servers must not have changed its events. */
async function compareLater(compare: Found['compare']): Promise<string[]> {
  try {
    return (await compare()).map((difference) => `${difference} (and was right at first)`);
  } catch (error) {
    return [`could not be compared again: ${inspect(error)}`];
  }
}

export function hasPassed({ differences, stuck }: RunResult): boolean {
  return differences.length === 0 && stuck === 0;
}
