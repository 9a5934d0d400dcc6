/** What a bench reports: one figure, the peers it is compared with, and its goal; and how it is measured. */
import { cpus, loadavg, totalmem } from 'node:os';
import { markdownTable, processorMs } from '../harness/programs.js';

export type Unit = 'events/s' | 'rows/s' | 'requests/s' | 'ms' | 'µs' | 'MB' | 'bytes' | 'errors';

/** A figure of the same work or request, done another way in the same run. */
interface Peer {
  readonly what: string;
  readonly value: number;
  readonly unit: Unit;
}

interface Reach {
  readonly text: string;
  readonly met: boolean;
}

export interface Figure extends Peer {
  /** Every measured run, without the warm-up; the value is their median. */
  readonly runs: readonly number[];
  readonly beside?: readonly Peer[];
  readonly reach?: Reach;
}

/** The median of some runs. @param goal tells of it whether it is reached */
export function figure(
  what: string,
  unit: Unit,
  runs: readonly number[],
  { beside, goal }: { readonly beside?: readonly Peer[]; readonly goal?: (value: number) => Reach } = {},
): Figure {
  const value = median(runs);
  return { what, value, unit, runs, ...(beside && { beside }), ...(goal && { reach: goal(value) }) };
}

export const atLeast = (wanted: number, of: number) => (value: number) => ({
  text: `${(value / of).toFixed(2)}× of ≥ ${wanted}×`,
  met: value / of >= wanted,
});

export const atMost = (allowed: number, of: number) => (value: number) => ({
  text: `${(value / of).toFixed(2)}× of ≤ ${allowed}×`,
  met: value / of <= allowed,
});

export const below = (limit: number, unit: Unit) => (value: number) => ({
  text: `< ${count(limit)} ${unit}`,
  met: value < limit,
});

/** `1,000` */
export function count(value: number): string {
  return value.toLocaleString('en');
}

export function median(values: readonly number[]): number {
  return percentile(values, 0.5);
}

/** The nearest rank. */
export function percentile(values: readonly number[], share: number): number {
  const sorted = [...values].sort((a, b) => a - b);
  const value = sorted[Math.max(0, Math.ceil(share * sorted.length) - 1)];
  if (value === undefined) throw new RangeError('no values to take a percentile of');
  return value;
}

const RUNS = 5;
/** Code of a service that has just started is not compiled yet; a dashboard uses a service that has run for days. */
export const WARM_UP_MS = 3_000;

/** Runs a function to warm up and then measures several runs. @param warmUpMs how long to run it unmeasured; at least once */
export async function measure(run: () => Promise<number>, runs = RUNS, warmUpMs = 0): Promise<number[]> {
  const [measured] = await measureInTurn(run, async () => 0, { runs, warmUpMs });
  return measured;
}

/**
 * Measures two functions alternately, so that other work on the machine affects both equally.
 * @param warmUpMs how long to run both unmeasured; each at least once
 * @returns the runs of each
 */
export async function measureInTurn(
  first: () => Promise<number>,
  second: () => Promise<number>,
  { runs = RUNS, warmUpMs = 0 } = {},
): Promise<readonly [number[], number[]]> {
  const started = performance.now();
  do {
    await first();
    await second();
  } while (performance.now() - started < warmUpMs);
  const measured: readonly [number[], number[]] = [[], []];
  for (let index = 0; index < runs; index += 1) {
    measured[0].push(await first());
    measured[1].push(await second());
  }
  return measured;
}

/** What several processes take for each event, in microseconds, over the runs of a bench. */
export class ProcessorTimes {
  readonly #pids: Readonly<Record<string, number>>;
  readonly #runs = new Map<string, number[]>();

  /** @param pids by what a report calls the process */
  constructor(pids: Readonly<Record<string, number>>) {
    this.#pids = pids;
  }

  /** Does the work, in which so many events are processed. */
  async of<T>(events: number, work: () => Promise<T>): Promise<T> {
    const before = new Map(Object.entries(this.#pids).map(([name, pid]) => [name, processorMs(pid)]));
    const result = await work();
    for (const [name, pid] of Object.entries(this.#pids)) {
      const [from, to] = [before.get(name), processorMs(pid)];
      if (from === undefined || to === undefined) continue;
      this.#runs.set(name, [...(this.#runs.get(name) ?? []), ((to - from) * 1000) / events]);
    }
    return result;
  }

  /** A figure for each process. The first run is the warm-up. */
  figures(of: string): Figure[] {
    return [...this.#runs].map(([name, [, ...runs]]) => figure(`processor time of ${name}, ${of}`, 'µs', runs));
  }
}

/** On which the figures were measured. The load average of the last minute before the run shows other work on it. */
export function describeMachine() {
  return {
    cores: cpus().length,
    processor: cpus()[0]?.model ?? 'unknown',
    memoryGiB: Math.round(totalmem() / 2 ** 30),
    platform: `${process.platform} ${process.arch}`,
    node: process.version,
    loadAtStart: Math.round((loadavg()[0] ?? 0) * 100) / 100,
  };
}

export interface Report {
  readonly machine: ReturnType<typeof describeMachine>;
  readonly events: number;
  readonly startedAt: string;
  readonly seconds: number;
  /** The figures, each with the name of its bench. */
  readonly figures: readonly (Figure & { readonly bench: string })[];
}

export function formatReport({ machine, events, seconds, figures }: Report): string {
  const { cores, processor, memoryGiB, platform, node, loadAtStart } = machine;
  const rows = figures.map(({ bench, reach, beside = [], ...own }) => [
    ...[bench, own.what, amount(own), beside.map((peer) => `${peer.what} ${amount(peer)}`).join('; ')],
    ...(reach ? [reach.text, reach.met ? 'reached' : 'MISSED'] : ['–', '']),
  ]);
  return (
    `${cores} cores (${processor}), ${memoryGiB} GiB, ${platform}, Node ${node}; load average ${loadAtStart} before the run; ` +
    `${count(events)} events; ${Math.round(seconds)} s in all. Medians.\n\n` +
    markdownTable(['bench', 'measured', 'figure', 'beside', 'reach', ''], rows)
  );
}

function amount({ value, unit }: Peer): string {
  const digits = value >= 100 || unit === 'errors' ? 0 : value >= 10 ? 1 : 2;
  return `${value.toLocaleString('en', { maximumFractionDigits: digits })} ${unit}`;
}
