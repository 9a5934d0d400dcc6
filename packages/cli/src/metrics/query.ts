/** The flags of a question, as people say it, and the question they make. */
import {
  COMPARISONS,
  type ComparedWindow,
  type Comparison,
  canonicalGroupBy,
  comparedWindow,
  formatTimestamp,
  GROUP_BY_DIMENSIONS,
  type GroupByDimension,
  isGroupByDimension,
  MAX_GROUP_BY_DIMENSIONS,
  MAX_METRICS_PAGE,
  RESOLUTIONS,
  type Resolution,
} from '@meterline/catalog/questions';
import type { MetricsQuery } from '@meterline/client';
import { usageError } from '../command.js';
import { type Command, InvalidArgumentError, Option } from '../commander.js';
import { wholeNumber } from '../flags.js';
import { type FilterFlags, filtersOf, withFilters } from './filters.js';
import { type WindowFlags, windowOf, withWindow } from './window.js';

export interface QueryFlags extends WindowFlags, FilterFlags {
  readonly resolution?: Resolution;
  readonly groupBy?: readonly GroupByDimension[];
  /** True: what fits the window. */
  readonly compare?: Comparison | true;
  readonly limit?: number;
  readonly cursor?: string;
}

export function withQuery(command: Command): Command {
  const grouped = withWindow(command)
    .addOption(
      new Option('--resolution <resolution>', 'length of a bucket (default: by the window)').choices(RESOLUTIONS),
    )
    .addOption(
      new Option('--group-by <dimensions>', `up to ${MAX_GROUP_BY_DIMENSIONS}, with commas between, or repeated`)
        .choices(GROUP_BY_DIMENSIONS)
        .argParser(groupByOf),
    )
    .addOption(
      new Option(
        '--compare [with]',
        'beside the time before: whole weeks earlier (period) or months by date; left out: months where the window is months',
      )
        .choices(COMPARISONS)
        .conflicts('cursor'),
    );
  return withFilters(grouped)
    .option('--limit <n>', `groups on a page, at most ${MAX_METRICS_PAGE}`, (text) =>
      wholeNumber(text, 1, MAX_METRICS_PAGE),
    )
    .option('--cursor <cursor>', 'the page of this cursor, which is meta.nextCursor of another answer');
}

export interface Question {
  readonly query: MetricsQuery;
  readonly groupBy: readonly GroupByDimension[];
  /** Undefined: not compared. */
  readonly compared: ComparedQuestion | undefined;
}

/** The same question about the time before. */
export interface ComparedQuestion {
  readonly query: MetricsQuery;
  /** `4 weeks earlier`. */
  readonly distance: string;
}

/** @throws CommandError when the flags contradict each other */
export function questionOf(flags: QueryFlags, now: Date): Question {
  const { groupBy, limit, cursor, compare } = flags;
  const { query: window, resolution: byWindow, whole, months, asOf } = windowOf(flags, now);
  const resolution = flags.resolution ?? byWindow;
  const asked = { ...filtersOf(flags), resolution, groupBy, limit };
  const query = { ...asked, ...window, cursor };
  if (compare === undefined) return { query, groupBy: groupBy ?? [], compared: undefined };
  const comparison = compare === true ? (months === undefined ? 'period' : 'months') : compare;
  const before = comparedWindow(comparison, { window: whole, months, resolution, asOf });
  if (!before) throw usageError('--compare: the window lies in the future, or the time before it begins before 1970');
  return {
    query,
    groupBy: groupBy ?? [],
    compared: { query: { ...asked, ...timesOf(before) }, distance: before.distance },
  };
}

function timesOf({ window: { startTime, endTime } }: ComparedWindow) {
  return { startTime: formatTimestamp(startTime), endTime: formatTimestamp(endTime) };
}

/** Added to those before. @throws InvalidArgumentError */
function groupByOf(text: string, before: readonly GroupByDimension[] = []): GroupByDimension[] {
  const names = [...before, ...text.split(',').map((name) => name.trim())];
  const known = names.filter(isGroupByDimension);
  const areDifferent = new Set(names).size === names.length;
  if (known.length === names.length && areDifferent && names.length <= MAX_GROUP_BY_DIMENSIONS) {
    return canonicalGroupBy(known);
  }
  throw new InvalidArgumentError(
    `It must be up to ${MAX_GROUP_BY_DIMENSIONS} different ones of ${GROUP_BY_DIMENSIONS.join(', ')}.`,
  );
}
