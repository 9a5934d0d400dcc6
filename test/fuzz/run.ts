/** How a fuzz runs: properties some at once, for a time that is limited, and the memory of the process that they are about. */
import * as fc from 'fast-check';
import { residentMiB } from '../harness/programs.js';

/** With it and the same numbers a run is repeated. */
export const SEED = Number(process.env.FUZZ_SEED ?? Date.now() % 1_000_000);
/** A check that hangs, or shrinking that goes on, is given up after so long. */
const SHORTEST_LIMIT_MS = 240_000;
const LIMIT_MS_PER_VALUE = 30;

export interface Runs {
  /** How many values, how many at once. */
  readonly count: number;
  readonly parallel: number;
  readonly seed?: number;
  /** With the seed of its part, repeats the value that a report names. */
  readonly path?: string | undefined;
  readonly limitMs?: number;
}

/**
 * Checks a property for so many values.
 * @throws Error with the smallest value that was found for which it does not hold, its seed and its path
 */
export async function holds<T>(
  arbitrary: fc.Arbitrary<T>,
  { count, parallel, seed = SEED, path, limitMs = SHORTEST_LIMIT_MS + LIMIT_MS_PER_VALUE * count }: Runs,
  check: (value: T) => Promise<void>,
): Promise<void> {
  const options = {
    ...(path === undefined ? { numRuns: Math.max(1, Math.ceil(count / parallel)) } : { numRuns: 1, path }),
    plugins: [fc.interruptAfterTimeLimit(limitMs, { failOnInterrupt: true })],
    includeErrorInReport: true,
  };
  const ended = await Promise.allSettled(
    Array.from({ length: path === undefined ? parallel : 1 }, (_, part) =>
      fc.assert(fc.asyncProperty(arbitrary, check), { ...options, seed: seed + part }),
    ),
  );
  for (const part of ended) if (part.status === 'rejected') throw part.reason;
}

/** @throws Error, unless there is nothing */
export function throwAll(problems: readonly string[]): void {
  const shown = problems.slice(0, 10).map((problem) => problem.slice(0, 3_000));
  if (problems.length > 0) throw new Error(`${problems.length} faults:\n${shown.join('\n')}`);
}

/** @returns ends the watch; it throws when the process is gone, or ever had so much more than at the beginning */
export function watchMemory(pid: number, mostMiB: number): () => void {
  const before = residentMiB(pid, 'VmRSS');
  return () => {
    if (before === undefined) return;
    const peak = residentMiB(pid, 'VmHWM');
    if (peak === undefined) throw new Error('the process has ended');
    if (peak > before + mostMiB) throw new Error(`memory: from ${before} to ${peak} MiB`);
  };
}
