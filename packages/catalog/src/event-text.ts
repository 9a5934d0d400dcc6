/** What people read about an event, in a terminal and on the page. */
import { formatUsdExact, grouped } from './amount-format.js';
import type { DecimalText } from './decimal.js';

/** `$0.20 / 1,000,000`: USD for so many units of the billing dimension; for one, the amount alone. */
export function priceText({ amount, per }: { readonly amount: DecimalText; readonly per: DecimalText }): string {
  return per === '1' ? formatUsdExact(amount) : `${formatUsdExact(amount)} / ${grouped(per)}`;
}

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
