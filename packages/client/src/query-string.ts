import type { Instant, MetricsQuery, WindowQuery } from '@meterline/catalog/api';

/** The query string without its question mark. Members that are undefined are left out; an empty text is sent. */
export function metricsQueryString({ startTime, endTime, groupBy, limit, ...others }: MetricsQuery): string {
  return queryString({
    startTime: instantText(startTime),
    endTime: instantText(endTime),
    groupBy: groupBy && groupBy.length > 0 ? groupBy.join(',') : undefined,
    limit: limit?.toString(),
    ...others,
  });
}

export function windowQueryString({ startTime, endTime }: WindowQuery): string {
  return queryString({ startTime: instantText(startTime), endTime: instantText(endTime) });
}

export function queryString(parameters: Readonly<Record<string, string | undefined>>): string {
  const sent = new URLSearchParams();
  for (const [name, value] of Object.entries(parameters)) if (value !== undefined) sent.set(name, value);
  return sent.toString();
}

function instantText(instant: Instant): string {
  return typeof instant === 'string' ? instant : instant.toISOString();
}
