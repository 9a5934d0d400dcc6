/** Figures of a report, each with what it is compared with in the same run and its goal; and how benches measure. */
import { cpus, loadavg, totalmem } from 'node:os';
import { markdownTable, processorMs } from '../harness/programs.js';

export type Unit = 'events/s' | 'rows/s' | 'requests/s' | 'requests' | 'ms' | 'µs' | 'MB' | 'bytes' | 'errors';
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
  return (await measureInTurn(run, async () => 0, options))[0];
}

interface Runs {
  readonly runs?: number;
  readonly warmUpMs?: number;
}

/** Measures two functions alternately, so that other work on the machine affects both equally. @returns the runs of each */
export async function measureInTurn(
  first: () => Promise<number>,
  second: () => Promise<number>,
  { runs = RUNS, warmUpMs = 0 }: Runs = {},
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

/** The processor time of several processes for each event, over the runs of a bench. */
export class ProcessorTimes {
  readonly #runs: number[][] = [];

  /** @param pids by what a report calls the process */
  constructor(readonly pids: Readonly<Record<string, number>>) {}

  /** Does the work, in which this number of events is processed. */
  async of<T>(events: number, work: () => Promise<T>): Promise<T> {
    const times = () => Object.values(this.pids).map((pid) => processorMs(pid) ?? Number.NaN);
    const before = times();
    const result = await work();
    this.#runs.push(times().map((after, index) => ((after - (before[index] ?? 0)) * 1000) / events));
    return result;
  }

  /** A figure for each process that can be measured. The first run is the warm-up. */
  figures(of: string): Figure[] {
    return Object.keys(this.pids).flatMap((name, index) => {
      const runs = this.#runs.slice(1).map((times) => times[index] ?? Number.NaN);
      return runs.some(Number.isNaN) ? [] : [figure(`processor time of ${name}, ${of}`, 'µs', runs)];
    });
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
