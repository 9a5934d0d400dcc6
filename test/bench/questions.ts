/** A dashboard's requests about the large account. */
import { formatTimestamp, type GroupByDimension, MS_PER_DAY, type Resolution, type Window } from '@meterline/catalog';
import { CORPUS_END } from './corpus.js';

export interface Question {
  readonly title: string;
  readonly window: Window;
  readonly resolution: Resolution;
  readonly groupBy: readonly GroupByDimension[];
  /** Whether the answer has more groups than a page. */
  readonly hasPages: boolean;
}

const TODAY = Math.floor(CORPUS_END / MS_PER_DAY) * MS_PER_DAY;

function lastDays(days: number): Window {
  return { startTime: TODAY - days * MS_PER_DAY, endTime: TODAY };
}

export const QUESTIONS: readonly Question[] = [
  {
    title: 'total, daily, 30 d',
    window: lastDays(30),
    resolution: 'daily',
    groupBy: [],
    hasPages: false,
  },
  {
    title: 'by type, daily, 30 d',
    window: lastDays(30),
    resolution: 'daily',
    groupBy: ['resource_type'],
    hasPages: false,
  },
  {
    title: 'by workspace × dimension, daily, 30 d',
    window: lastDays(30),
    resolution: 'daily',
    groupBy: ['workspace', 'billing_dimension'],
    hasPages: false,
  },
  {
    title: 'by name, daily, 90 d, first page',
    window: { startTime: TODAY - 89 * MS_PER_DAY, endTime: TODAY },
    resolution: 'daily',
    groupBy: ['resource_name'],
    hasPages: true,
  },
  {
    title: 'by uuid, hourly, 7 d, first page',
    window: lastDays(7),
    resolution: 'hourly',
    groupBy: ['resource_uuid'],
    hasPages: true,
  },
  {
    title: 'current day, hourly, 2 h unsealed',
    window: { startTime: TODAY, endTime: TODAY + MS_PER_DAY },
    resolution: 'hourly',
    groupBy: [],
    hasPages: false,
  },
];

/** The request's path for the API. */
export function metricsPath(
  accountId: string,
  { window, resolution, groupBy }: Pick<Question, 'window' | 'resolution' | 'groupBy'>,
): string {
  const parameters = new URLSearchParams({
    startTime: formatTimestamp(window.startTime),
    endTime: formatTimestamp(window.endTime),
    resolution,
    ...(groupBy.length > 0 && { groupBy: groupBy.join(',') }),
  });
  return `/v0/accounts/${accountId}/metrics?${parameters}`;
}
