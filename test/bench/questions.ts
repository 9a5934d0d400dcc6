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

/** @param days before today */
function question(title: string, days: number, resolution: Resolution, groupBy: GroupByDimension[], hasPages = false) {
  return { title, window: { startTime: TODAY - days * MS_PER_DAY, endTime: TODAY }, resolution, groupBy, hasPages };
}

export const QUESTIONS: readonly Question[] = [
  question('total, daily, 30 d', 30, 'daily', []),
  question('by type, daily, 30 d', 30, 'daily', ['resource_type']),
  question('by workspace × dimension, daily, 30 d', 30, 'daily', ['workspace', 'billing_dimension']),
  question('by name, daily, 90 d, first page', 89, 'daily', ['resource_name'], true),
  question('by uuid, hourly, 7 d, first page', 7, 'hourly', ['resource_uuid'], true),
  {
    ...question('current day, hourly, 2 h unsealed', 0, 'hourly', []),
    window: { startTime: TODAY, endTime: TODAY + MS_PER_DAY },
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
