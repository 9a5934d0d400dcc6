/** How a fuzz runs: properties in some lanes at once, and the memory of the process that they are about. Source: proc_pid_status(5). */
import { readFileSync } from 'node:fs';
import * as fc from 'fast-check';
import type { FuzzSite } from './site.js';

export interface FuzzInput {
  readonly site: FuzzSite;
  readonly seed: number;
  /** About how many requests, and events, the run sends. */
  readonly requests: number;
  readonly events: number;
}

export interface Fuzz {
  readonly name: string;
  readonly what: string;
  /** @returns what was sent, and how the service stood it, for people @throws Error with what did not hold */
  readonly run: (input: FuzzInput) => Promise<{ readonly sent: string; readonly stood: string }>;
}

/**
 * Checks a property for so many values, in some lanes at once.
 * @throws AggregateError with the smallest value of each lane for which it does not hold
 */
export async function holds<T>(
  arbitrary: fc.Arbitrary<T>,
  { seed, count, lanes }: { readonly seed: number; readonly count: number; readonly lanes: number },
  check: (value: T) => Promise<void>,
): Promise<void> {
  const numRuns = Math.max(1, Math.ceil(count / lanes));
  const ended = await Promise.allSettled(
    Array.from({ length: lanes }, (_, lane) =>
      fc.assert(fc.asyncProperty(arbitrary, check), { seed: seed + lane, numRuns, includeErrorInReport: true }),
    ),
  );
  throwAll(ended.flatMap((lane) => (lane.status === 'rejected' ? [String(lane.reason)] : [])));
}

/** @throws Error, unless there is nothing */
export function throwAll(faults: readonly string[]): void {
  const shown = faults.slice(0, 10).map((fault) => fault.slice(0, 3_000));
  if (faults.length > 0) throw new Error(`${faults.length} faults:\n${shown.join('\n')}`);
}

/** @returns ends the watch; it throws when the process is gone, or ever had so much more than at the beginning */
export function watchMemory(pid: number, mostMiB: number): () => string {
  const before = mebibytes(pid, 'VmRSS');
  return () => {
    if (before === undefined) return 'memory is not reported here';
    const peak = mebibytes(pid, 'VmHWM');
    if (peak === undefined) throw new Error('the process has ended');
    if (peak > before + mostMiB) throw new Error(`memory: from ${before} to ${peak} MiB`);
    return `${before} MiB, at most ${peak} MiB`;
  };
}

/** Undefined where the system does not report it. */
function mebibytes(pid: number, name: 'VmRSS' | 'VmHWM'): number | undefined {
  try {
    const status = readFileSync(`/proc/${pid}/status`, 'utf8');
    const kibibytes = new RegExp(`^${name}:\\s+(\\d+) kB$`, 'm').exec(status)?.[1];
    return kibibytes === undefined ? undefined : Math.round(Number(kibibytes) / 1024);
  } catch {
    return undefined;
  }
}

/** How often each status came. */
export class Statuses {
  readonly #counts = new Map<number, number>();

  add(status: number): void {
    this.#counts.set(status, (this.#counts.get(status) ?? 0) + 1);
  }

  toString(): string {
    const sorted = [...this.#counts].sort(([a], [b]) => a - b);
    return sorted.map(([status, count]) => `${count} × ${status}`).join(', ');
  }
}
