/** What must count in the end, as sums of whole numbers: it shares no code with the product, and does not grow with the events. */
import { decimalOf, printDecimal, roundHalfEven } from '../oracle/exact.js';
import { COST_DECIMALS, costUnder, EXAMPLE_BOOK, type OraclePriceBook, USAGE_DECIMALS } from '../oracle/prices.js';

interface Sum {
  usage: bigint;
  cost: bigint;
}

/** A book for each dimension, so that its price is found at once. */
const BOOKS = new Map<string, OraclePriceBook>(
  EXAMPLE_BOOK.prices.map((price) => [price.billingDimension, { ...EXAMPLE_BOOK, prices: [price] }]),
);
const ENTRY = /"billingDimension":"([a-z_]+)"[^{]*"summary":\{"cost":([\d.]+),"usage":([\d.]+)\}/g;

export class Ledger {
  readonly #sums = new Map<string, Sum>();
  events = 0;
  /** Events that a worker must have kept as rejected. */
  rejected = 0;

  /** To be called once for each event, with its highest revision, unless that is a void. */
  add(event: { accountId: string; billingDimension: string; usage: number | string }): void {
    const { accountId, billingDimension } = event;
    const decimal = decimalOf(String(event.usage));
    const usage = decimal && roundHalfEven(decimal, USAGE_DECIMALS);
    const book = BOOKS.get(billingDimension);
    const cost = usage && book && costUnder(book, { accountId, billingDimension, timestamp: 0, usage });
    if (usage === undefined || cost === undefined) throw new Error(`the ledger cannot read ${JSON.stringify(event)}`);
    const key = `${accountId} ${billingDimension}`;
    const before = this.#sums.get(key) ?? { usage: 0n, cost: 0n };
    this.#sums.set(key, { usage: before.usage + usage, cost: before.cost + cost });
    this.events += 1;
  }

  /** @param body a response by dimension @returns the dimensions of the account that differ from it in any digit, as they should be */
  differences(accountId: string, body: string): string[] {
    const shown = new Map(
      [...body.matchAll(ENTRY)].map(([, dimension, cost, usage]) => [dimension, `${cost} ${usage}`]),
    );
    return [...BOOKS.keys()].flatMap((dimension) => {
      const { usage, cost } = this.#sums.get(`${accountId} ${dimension}`) ?? { usage: 0n, cost: 0n };
      const expected = `${printDecimal(cost, COST_DECIMALS)} ${printDecimal(usage, USAGE_DECIMALS)}`;
      const found = shown.get(dimension) ?? '0 0';
      return found === expected ? [] : [`${accountId} ${dimension}: ${found} instead of ${expected} (cost, usage)`];
    });
  }
}
