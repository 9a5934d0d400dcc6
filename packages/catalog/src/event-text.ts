/** What people read about an event, in a terminal and on the page. */
import { formatUsdExact, grouped, UNIT_NAME } from './amount-format.js';
import type { Unit } from './dimensions.js';

export interface UnitPrice {
  /** USD, not always in its shortest form. */
  readonly amount: string;
  /** So many units of the billing dimension. */
  readonly per: string;
}

/** `$0.0000115 per GB-s`, `$0.12 per GB-month`, `$0.20 per 1,000,000 events`, `$20.00 per month (730 h)`. */
export function priceText({ amount, per }: UnitPrice, unit: Unit): string {
  return `${formatUsdExact(amount)} per ${KNOWN_QUANTITIES[unit][per] ?? `${grouped(per)} ${UNIT_NAME[unit]}`}`;
}

/** A month has 730 hours: the storage prices of most books are for a GB over a month. */
const KNOWN_QUANTITIES: Readonly<Record<Unit, Readonly<Record<string, string>>>> = {
  gbs: { '1': 'GB-s', '3600': 'GB-h', '2628000': 'GB-month' },
  hours: { '1': 'h', '730': 'month (730 h)' },
  count: { '1': 'event' },
};

/** `was revision 1, price 2, a void`, of a payload that another has replaced. */
export function replacedText({
  revision,
  priceRevision,
  voided,
}: {
  readonly revision: number;
  readonly priceRevision: number;
  readonly voided: boolean;
}): string {
  const price = priceRevision > 0 ? `, price ${priceRevision}` : '';
  return `was revision ${revision}${price}${voided ? ', a void' : ''}`;
}
