import type { GroupByDimension, Window } from '@meterline/catalog';

/** Which events a question is about: one account, a window, and values that dimensions must have. */
export interface Selection {
  readonly accountId: string;
  readonly window: Window;
  readonly filters: Readonly<Partial<Record<GroupByDimension, string>>>;
}

/**
 * The condition for a selection on usage_events FINAL. Voided events count nowhere; a revision may move an event
 * within its hour, so the exact window is a condition on the surviving row, the hours only narrow what is read.
 */
export function selectionCondition({ filters }: Selection): string {
  const conditions = [
    'account_id = {account_id: String}',
    "event_hour >= toStartOfHour(fromUnixTimestamp64Milli({start_time: Int64}, 'UTC'))",
    "event_hour <= toDateTime(intDiv({end_time: Int64} - 1, 1000), 'UTC')",
    "timestamp >= fromUnixTimestamp64Milli({start_time: Int64}, 'UTC')",
    "timestamp < fromUnixTimestamp64Milli({end_time: Int64}, 'UTC')",
    'NOT voided',
    ...Object.keys(filters).map((dimension) => `${dimension} = {${dimension}: String}`),
  ];
  return conditions.join('\n      AND ');
}

export function selectionParameters({ accountId, window, filters }: Selection): Record<string, unknown> {
  return { account_id: accountId, start_time: window.startTime, end_time: window.endTime, ...filters };
}
