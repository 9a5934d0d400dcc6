/** Figures of a report, each with what it is compared with in the same run and its goal; and how benches measure. */
import { cpus, loadavg, totalmem } from 'node:os';
import { markdownTable, processorMs } from '../harness/programs.js';

export type Unit = 'events/s' | 'rows/s' | 'requests/s' | 'requests' | 'ms' | 's' | 'MB' | 'bytes' | 'errors';
type Quantity = readonly [value: number, unit: Unit];

interface Goal {
  readonly text: string;
  readonly met: boolean;
}

export interface Figure {
  readonly what: string;
  /** The median of the runs. */
  readonly value: number;
  readonly unit: Unit;
  /** Every measured run, without the warm-up. */
  readonly runs: readonly number[];
  readonly beside: Readonly<Record<string, Quantity>>;
  readonly goal: Goal | undefined;
}

interface Comparison {
  /** A number has the unit of the figure. */
  readonly beside?: Readonly<Record<string, number | Quantity>>;
  readonly goal?: ((value: number) => Goal) | undefined;
}

export function figure(what: string, unit: Unit, runs: readonly number[], comparison: Comparison = {}): Figure {
  const value = median(runs);
  const beside = Object.entries(comparison.beside ?? {}).map(([peer, amount]): [string, Quantity] => [
    peer,
    typeof amount === 'number' ? [amount, unit] : amount,
  ]);
  return { what, value, unit, runs, beside: Object.fromEntries(beside), goal: comparison.goal?.(value) };
}

const SIGNS = {
  '≥': (value: number, wanted: number) => value >= wanted,
  '≤': (value: number, wanted: number) => value <= wanted,
} as const;
type Sign = keyof typeof SIGNS;

/** The figure is at least, or at most, this multiple of a peer. */
export const ratio = (sign: Sign, wanted: number, of: number) => (value: number) => ({
  text: `${(value / of).toFixed(2)}× of ${sign} ${wanted}×`,
  met: SIGNS[sign](value / of, wanted),
});

export const limit = (sign: Sign, wanted: number, unit: Unit) => (value: number) => ({
  text: `${sign} ${shortest([wanted, unit])}`,
  met: SIGNS[sign](value, wanted),
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

/** Measures several runs after a warm-up. @param warmUpMs how long to run unmeasured; at least once */
export async function measure(run: () => Promise<number>, options: Runs = {}): Promise<number[]> {
  return (await measureInTurn([run], options))[0] ?? [];
}

interface Runs {
  readonly runs?: number;
  readonly warmUpMs?: number;
}

/** Measures functions in turn, so that other work on the machine affects all of them equally. @returns the runs of each */
export async function measureInTurn(
  functions: readonly (() => Promise<number>)[],
  { runs = RUNS, warmUpMs = 0 }: Runs = {},
): Promise<number[][]> {
  const started = performance.now();
  do {
    for (const run of functions) await run();
  } while (performance.now() - started < warmUpMs);
  const measured: number[][] = functions.map(() => []);
  for (let index = 0; index < runs; index += 1) {
    for (const [which, run] of functions.entries()) measured[which]?.push(await run());
  }
  return measured;
}

/** The processor time that several processes take for events, requests or rows, over the runs of a bench. */
export class ProcessorTimes {
  /** Seconds of each process for one of them. */
  readonly #runs: number[][] = [];

  /** @param pids by the name of the process in the report */
  constructor(readonly pids: Readonly<Record<string, number>>) {}

  /** Does work on this many events, requests or rows. */
  async of<T>(count: number, work: () => Promise<T>): Promise<T> {
    const times = () => Object.values(this.pids).map((pid) => processorMs(pid) ?? Number.NaN);
    const before = times();
    const result = await work();
    this.#runs.push(times().map((after, index) => (after - (before[index] ?? 0)) / 1000 / count));
    return result;
  }

  /** A figure for each process that can be measured, and one for all of them. The first run is the warm-up. @param of `a million events` */
  figures(of: string, count: number): Figure[] {
    const runs = this.#runs.slice(1);
    const names = Object.keys(this.pids);
    const seconds = (name: string, values: readonly number[]) =>
      values.some(Number.isNaN)
        ? []
        : figure(
            `processor time of ${name}, ${of}`,
            's',
            values.map((value) => value * count),
          );
    const all = runs.map((times) => times.reduce((sum, time) => sum + time, 0));
    return [
      ...names.flatMap((name, index) =>
        seconds(
          name,
          runs.map((times) => times[index] ?? Number.NaN),
        ),
      ),
      ...(names.length > 1 ? [seconds('all of them', all)].flat() : []),
    ];
  }
}

/** The load average of the last minute before the run shows other work on the machine. */
export function describeMachine() {
  return {
    ...{ cores: cpus().length, processor: cpus()[0]?.model ?? 'unknown' },
    ...{ memoryGiB: Math.round(totalmem() / 2 ** 30), platform: `${process.platform} ${process.arch}` },
    ...{ node: process.version, loadAtStart: Math.round((loadavg()[0] ?? 0) * 100) / 100 },
  };
}

export interface Report {
  readonly machine: ReturnType<typeof describeMachine>;
  readonly events: number;
  readonly startedAt: string;
  readonly seconds: number;
  readonly figures: readonly (Figure & { readonly bench: string })[];
}

export function formatReport({ machine, events, seconds, figures }: Report): string {
  const { cores, processor, memoryGiB, platform, node, loadAtStart } = machine;
  const rows = figures.map(({ bench, what, value, unit, beside, goal }) => [
    ...[bench, what, shortest([value, unit])],
    Object.entries(beside)
      .map(([peer, amount]) => `${peer} ${shortest(amount)}`)
      .join('; '),
    ...(goal ? [goal.text, goal.met ? 'reached' : 'MISSED'] : ['–', '']),
  ]);
  return (
    `${cores} cores (${processor}), ${memoryGiB} GiB, ${platform}, Node ${node}; load average ${loadAtStart} before the run; ` +
    `${count(events)} events; ${Math.round(seconds)} s in all. Medians.\n\n` +
    markdownTable(['bench', 'measured', 'figure', 'beside', 'goal', ''], rows)
  );
}

function shortest([value, unit]: Quantity): string {
  const digits = value >= 100 || unit === 'errors' ? 0 : value >= 10 ? 1 : 2;
  return `${value.toLocaleString('en', { maximumFractionDigits: digits })} ${unit}`;
}
