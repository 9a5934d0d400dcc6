/** Describes the forecast of the month for the page. The catalog computes it. */
import { type DecimalText, percentOf } from '@meterline/catalog/plain';

export const FORECAST_RULE =
  'The cost so far, plus an estimate for each remaining day: the average of the same weekday in the last four weeks. Today is estimated at that average or more.';

export const FORECAST_SUMMARY = 'so far + weekday averages of the last 4 weeks';

/** Formats a share of the budget, such as `62%`. */
export function budgetShare(part: DecimalText, budget: DecimalText): string {
  return `${percentOf(part, budget, 0) ?? '0'}%`;
}
