/** What re-pricing changes, in money, by billing dimension. */
import { BILLING_DIMENSIONS, type BillingDimension, COST_SCALE, formatScaled } from '@meterline/catalog';
import { formatCount } from '../command-context.js';
import { textTable } from '../text-table.js';

/** USD scaled by 10^12. */
interface Amounts {
  events: number;
  changed: number;
  before: bigint;
  after: bigint;
}

/** Amounts as text, exact. */
export interface MoneyLine {
  readonly billingDimension: BillingDimension | 'total';
  /** Events that count in the window. */
  readonly events: number;
  /** Those of them whose cost changes. */
  readonly changed: number;
  readonly before: string;
  readonly after: string;
  readonly difference: string;
}

export class MoneyTable {
  readonly #amounts = new Map<BillingDimension, Amounts>();

  add(dimension: BillingDimension, before: bigint, after: bigint): void {
    const amounts = this.#amounts.get(dimension) ?? { events: 0, changed: 0, before: 0n, after: 0n };
    this.#amounts.set(dimension, amounts);
    amounts.events += 1;
    if (before !== after) amounts.changed += 1;
    amounts.before += before;
    amounts.after += after;
  }

  /** Dimensions with events, in the catalog's order. */
  lines(): MoneyLine[] {
    return BILLING_DIMENSIONS.flatMap((dimension) => {
      const amounts = this.#amounts.get(dimension);
      return amounts ? [moneyLine(dimension, amounts)] : [];
    });
  }

  total(): MoneyLine {
    const sum = { events: 0, changed: 0, before: 0n, after: 0n };
    for (const { events, changed, before, after } of this.#amounts.values()) {
      sum.events += events;
      sum.changed += changed;
      sum.before += before;
      sum.after += after;
    }
    return moneyLine('total', sum);
  }

  text(): string {
    const cells = [...this.lines(), this.total()].map((line) => [
      line.billingDimension,
      formatCount(line.events),
      formatCount(line.changed),
      line.before,
      line.after,
      line.difference,
    ]);
    return textTable(
      [['DIMENSION', 'EVENTS', 'CHANGED', 'BEFORE (USD)', 'AFTER (USD)', 'DIFFERENCE'], ...cells],
      [1, 2, 3, 4, 5],
    );
  }
}

function moneyLine(billingDimension: MoneyLine['billingDimension'], amounts: Amounts): MoneyLine {
  const { events, changed, before, after } = amounts;
  return {
    billingDimension,
    events,
    changed,
    before: formatScaled(before, COST_SCALE),
    after: formatScaled(after, COST_SCALE),
    difference: formatScaled(after - before, COST_SCALE),
  };
}
