import { OTHER_KEY, type Series } from '../breakdown/breakdown.js';

/** How many the style sheet has. */
const COLORS = 10;

/** A CSS colour by rank: the most expensive group has the accent, and all others are grey. */
export function seriesColor({ key }: Pick<Series, 'key'>, rank: number): string {
  return key === OTHER_KEY ? 'var(--series-other)' : `var(--series-${(rank % COLORS) + 1})`;
}
