/** What a bench reports: one figure, the peers it is compared with, and its goal. */

export type Unit = 'events/s' | 'rows/s' | 'jobs/s' | 'requests/s' | 'ms' | 'µs' | 'MB' | 'bytes' | 'errors' | '×';

/** The same work or request, done another way in the same run. */
interface Peer {
  readonly what: string;
  readonly value: number;
  readonly unit: Unit;
}

export interface Reach {
  readonly text: string;
  readonly met: boolean;
}

export interface Figure {
  readonly what: string;
  /** The median of the runs. */
  readonly value: number;
  readonly unit: Unit;
  /** Every measured run, without the warm-up. */
  readonly runs?: readonly number[];
  readonly beside?: readonly Peer[];
  readonly reach?: Reach;
  readonly note?: string;
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

export function atLeast(ratio: number, wanted: number): Reach {
  return { text: `${ratio.toFixed(2)}× of ≥ ${wanted}×`, met: ratio >= wanted };
}

export function atMost(ratio: number, allowed: number): Reach {
  return { text: `${ratio.toFixed(2)}× of ≤ ${allowed}×`, met: ratio <= allowed };
}

export function below(value: number, limit: number, unit: Unit): Reach {
  return { text: `< ${limit.toLocaleString('en')} ${unit}`, met: value < limit };
}
