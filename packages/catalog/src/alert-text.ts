/** Amounts of an alert as people read them, the same on the command line and on the page. */
import type { AlertMeasure } from './alert.js';
import { formatUsage, formatUsdExact } from './amount-format.js';
import { decimalText } from './decimal.js';
import { BILLING_DIMENSIONS, DIMENSIONS, type Unit } from './dimensions.js';

/** What tells in which unit an alert counts. */
export interface MeasuredAlert {
  readonly measure: AlertMeasure;
  /** Of usage with exactly one billing dimension. */
  readonly filters: { readonly billingDimension?: string | readonly string[] | undefined };
}

/** Undefined: it counts USD. */
export function alertUnit({ measure, filters: { billingDimension } }: MeasuredAlert): Unit | undefined {
  const dimension = BILLING_DIMENSIONS.find((each) => [billingDimension].flat().includes(each));
  return measure === 'usage' && dimension ? DIMENSIONS[dimension].unit : undefined;
}

/** Every digit: `$100.50`, `50,000 events`. */
export function alertAmountText(amount: string, alert: MeasuredAlert): string {
  const unit = alertUnit(alert);
  return unit === undefined ? formatUsdExact(amount) : formatUsage(decimalText(amount), unit);
}
