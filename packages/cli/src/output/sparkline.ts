/** A series as a line of bars. */

const BARS = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'] as const;
/** Nothing at all, which must not look like a little. */
const NOTHING = '·';

/**
 * One character for a bucket, or for several where there are more buckets than `width`; the highest bar is the highest
 * value of this series.
 * @param values at least 0
 */
export function sparkline(values: readonly number[], width: number): string {
  const bars = squeezed(values, Math.max(1, width));
  const highest = Math.max(...bars);
  return bars.map((value) => (value === 0 ? NOTHING : BARS[Math.ceil((value / highest) * BARS.length) - 1])).join('');
}

/** The same sum over at most `width` parts of nearly equal length. */
function squeezed(values: readonly number[], width: number): number[] {
  if (values.length <= width) return [...values];
  const sums = new Array<number>(width).fill(0);
  for (const [index, value] of values.entries()) {
    const part = Math.floor((index * width) / values.length);
    sums[part] = (sums[part] ?? 0) + value;
  }
  return sums;
}
