import type { DecimalText } from '@meterline/catalog';

/** How many digits after the point the longest of the amounts has. */
export function longestFraction(amounts: Iterable<DecimalText | undefined>, least: number): number {
  let longest = least;
  for (const amount of amounts) longest = Math.max(longest, amount?.split('.')[1]?.length ?? 0);
  return longest;
}
