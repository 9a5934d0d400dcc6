/** Parses price books, which contain dated unit prices and overrides for single accounts. Source: docs/concepts.md, "Price". */
import * as z from 'zod';
import { billingDimensionText, instantText, nameText } from './api/parameters.js';
import type { BillingDimensionResponse } from './api/responses.js';
import { type EpochMs, formatTimestamp } from './calendar.js';
import { COST_SCALE, type DecimalText, decimalText, divideHalfEven, formatScaled, USAGE_SCALE } from './decimal.js';
import { type BillingDimension, billingDimensions, namedDimensions } from './dimensions.js';
import { parseUsageEvent, type UsageEvent } from './event.js';
import { type Checked, rejected } from './rejection.js';

const MAX_PRICE_BOOK_VERSION = 65_535;
const CURRENCY = 'USD';

/** `amount` and `per` have at most 12 integer and 18 fraction digits. */
const PRICE_SCALE = 18;
/** In USD. The largest usage then costs 10^21 USD (10^15 units), and the sum of 100,000 such events still fits Decimal(38,12). */
const MAX_UNIT_PRICE = 1_000_000n;

const decimal = z
  .string('must be a decimal string such as "0.0000115", not a number')
  .regex(/^\d{1,12}(\.\d{1,18})?$/, {
    error: 'must be a decimal string with at most 12 integer and 18 fraction digits',
    abort: true,
  })
  .transform((text) => {
    const [integer = '', fraction = ''] = text.split('.');
    return BigInt(integer + fraction.padEnd(PRICE_SCALE, '0'));
  });

function schemaOf(billingDimension: z.ZodType<BillingDimension>) {
  const price = z.strictObject({
    billingDimension,
    effectiveFrom: z.string('must be an RFC 3339 timestamp in UTC').pipe(instantText),
    /** The price in USD for `per` units of usage. */
    amount: decimal,
    per: decimal.prefault('1'),
  });
  return z.strictObject({
    /** Must be increased with every change. If the same revision of an event was priced with two books, the older book's price applies. */
    version: z.int().min(0).max(MAX_PRICE_BOOK_VERSION),
    currency: z.literal(CURRENCY, 'must be "USD"'),
    prices: z.array(price),
    overrides: z.array(price.extend({ accountId: z.string('must be an account').pipe(nameText) })).default([]),
  });
}

const priceBookSchema = schemaOf(billingDimensionText(''));
/** A price book from ClickHouse or from the API may have dimensions that this process does not know. */
const anyPriceBookSchema = schemaOf(z.string());
export type PriceBookFile = z.input<typeof priceBookSchema>;

export interface Price {
  readonly effectiveFrom: EpochMs;
  /** The price in USD for `per` units of usage. */
  readonly amount: DecimalText;
  readonly per: DecimalText;
  /** The exact price in lowest terms: cost (scaled by 10^12) = usage (scaled by 10^9) × numerator ÷ denominator. */
  readonly numerator: bigint;
  readonly denominator: bigint;
}

/** Thrown if a price book is unusable. The message lists every error with its position. */
export class PriceBookError extends Error {
  override readonly name = 'PriceBookError';
}

export class PriceBook {
  readonly version: number;
  /** The same text for all books with the same prices, whatever their version, and their order or layout in the file. */
  readonly canonicalText: string;
  readonly #prices: PriceLists;
  readonly #overrides: ReadonlyMap<string, PriceLists>;

  /**
   * @param isComplete whether the book must have a price for every dimension that this process knows, and for no other
   * @throws PriceBookError if the input is not a price book
   */
  constructor(input: unknown, isComplete = true) {
    const book = (isComplete ? priceBookSchema : anyPriceBookSchema).safeParse(input);
    if (!book.success) throw new PriceBookError(book.error.issues.map(describeIssue).join('; '));
    const { version, currency, prices, overrides } = book.data;
    this.version = version;
    this.#prices = priceLists('prices', prices);
    this.#overrides = new Map(
      grouped(overrides, ({ accountId }) => accountId).map(([account, rows]) => [
        account,
        priceLists(`overrides of ${account}`, rows),
      ]),
    );
    const missing = billingDimensions().filter((dimension) => !this.#prices.has(dimension));
    if (isComplete && missing.length > 0) throw new PriceBookError(`no price for ${missing.join(', ')}`);
    this.canonicalText = JSON.stringify([
      currency,
      prices.map(canonicalRow).sort(),
      overrides.map(canonicalRow).sort(),
    ]);
  }

  static fromCanonicalText(version: number, text: string): PriceBook {
    const [currency, prices, overrides] = canonicalBook.parse(JSON.parse(text));
    const book = {
      version,
      currency,
      prices: prices.map(priceOfCanonicalRow),
      overrides: overrides.map(priceOfCanonicalRow),
    };
    // A book that an earlier release stored may lack dimensions that were added since.
    return new PriceBook(book, false);
  }

  /** Creates a book from the current prices of an account. The book has no earlier prices. @throws PriceBookError */
  static ofBillingDimensions(dimensions: readonly BillingDimensionResponse[]): PriceBook {
    const prices = dimensions.flatMap(({ billingDimension, price }) => {
      if (!price) return [];
      const { amount, per, effectiveFrom } = price;
      return [{ billingDimension, amount, per, effectiveFrom }];
    });
    return new PriceBook({ version: 0, currency: CURRENCY, prices }, false);
  }

  billingDimensions(accountId: string, instant: EpochMs): BillingDimensionResponse[] {
    return namedDimensions().map((dimension) => {
      const price = this.priceAt(accountId, dimension.billingDimension, instant);
      return { ...dimension, ...(price && { price: priceJson(price) }) };
    });
  }

  /** Returns the account's own price at an instant, or the general price if there is none. Returns undefined before the first price. */
  priceAt(accountId: string, dimension: BillingDimension, instant: EpochMs): Price | undefined {
    const override = inForce(this.#overrides.get(accountId)?.get(dimension), instant);
    return override ?? inForce(this.#prices.get(dimension), instant);
  }
}

/** Validates an event and finds its price. The collector and the ingest worker share this check, so that both accept the same events. */
export function parsePricedEvent(
  input: unknown,
  book: PriceBook,
  now: EpochMs,
): Checked<{ readonly event: UsageEvent; readonly price: Price }> {
  const checked = parseUsageEvent(input, now);
  if (!checked.ok) return checked;
  const { accountId, billingDimension, timestamp } = checked.value;
  const price = book.priceAt(accountId, billingDimension, timestamp);
  if (price) return { ok: true, value: { event: checked.value, price } };
  return rejected('no_price', `the price book has no price for ${billingDimension} at the event's timestamp`);
}

/** Returns the cost in USD, scaled by 10^12 and rounded half-even once: usage (scaled by 10^9) × amount ÷ per. */
export function costOf(usage: bigint, { numerator, denominator }: Price): bigint {
  return divideHalfEven(usage * numerator, denominator);
}

type PriceLists = ReadonlyMap<BillingDimension, readonly Price[]>;
type PriceRow = z.output<typeof priceBookSchema>['prices'][number] & { readonly accountId?: string };

function inForce(prices: readonly Price[] | undefined, instant: EpochMs): Price | undefined {
  return prices?.find(({ effectiveFrom }) => effectiveFrom <= instant);
}

function priceLists(place: string, rows: readonly PriceRow[]): PriceLists {
  const byDimension = grouped(rows, ({ billingDimension }) => billingDimension);
  return new Map(byDimension.map(([dimension, rows]) => [dimension, datedPrices(`${place}: ${dimension}`, rows)]));
}

function grouped<Row, Key>(rows: readonly Row[], keyOf: (row: Row) => Key): [Key, Row[]][] {
  return [...new Set(rows.map(keyOf))].map((key) => [key, rows.filter((row) => keyOf(row) === key)]);
}

function datedPrices(place: string, rows: readonly PriceRow[]): readonly Price[] {
  const prices = rows.map((row) => toPrice(place, row)).sort((a, b) => b.effectiveFrom - a.effectiveFrom);
  const twice = prices.find((price, index) => price.effectiveFrom === prices[index + 1]?.effectiveFrom);
  if (twice) {
    throw new PriceBookError(`${place} has two prices from ${new Date(twice.effectiveFrom).toISOString()}; keep one`);
  }
  return prices;
}

function toPrice(place: string, { amount, per, effectiveFrom }: PriceRow): Price {
  if (per === 0n) throw new PriceBookError(`${place}: per must be above 0`);
  if (amount > per * MAX_UNIT_PRICE) {
    throw new PriceBookError(`${place}: a unit may cost at most ${MAX_UNIT_PRICE} USD`);
  }
  const scaled = amount * 10n ** BigInt(COST_SCALE - USAGE_SCALE);
  const divisor = greatestCommonDivisor(scaled, per);
  const [numerator, denominator] = [scaled / divisor, per / divisor];
  return { effectiveFrom, amount: priceDecimal(amount), per: priceDecimal(per), numerator, denominator };
}

function priceDecimal(scaled: bigint): DecimalText {
  return decimalText(formatScaled(scaled, PRICE_SCALE));
}

function priceJson({ amount, per, effectiveFrom }: Price): BillingDimensionResponse['price'] {
  return { amount, per, currency: CURRENCY, effectiveFrom: formatTimestamp(effectiveFrom) };
}

function greatestCommonDivisor(a: bigint, b: bigint): bigint {
  return b === 0n ? a : greatestCommonDivisor(b, a % b);
}

function canonicalRow({ accountId = '', billingDimension, effectiveFrom, amount, per }: PriceRow): string {
  return [accountId, billingDimension, effectiveFrom, amount, per].join('|');
}

const canonicalBook = z.tuple([z.string(), z.array(z.string()), z.array(z.string())]);

/** Parses a row that canonicalRow() wrote. Splits it from the end, because an account ID may contain the separator. */
function priceOfCanonicalRow(row: string) {
  const parts = row.split('|');
  const [billingDimension = '', effectiveFrom, amount = '', per = ''] = parts.slice(-4);
  const accountId = parts.slice(0, -4).join('|');
  return {
    ...(accountId !== '' && { accountId }),
    billingDimension,
    effectiveFrom: formatTimestamp(Number(effectiveFrom)),
    amount: priceDecimal(BigInt(amount)),
    per: priceDecimal(BigInt(per)),
  };
}

export function describeIssue({ path, message }: z.core.$ZodIssue): string {
  return path.length > 0 ? `${path.join('.')} ${message}` : message;
}

const EFFECTIVE_FROM = '1970-01-01T00:00:00Z';
/** The GB-seconds of one GB in a month of 730 hours. With this value in `per`, prices per GB-month stay exact. */
const GB_MONTH = '2628000';

/** The built-in example price book. It is used if PRICE_BOOK is not set. */
export const DEFAULT_PRICE_BOOK_FILE = {
  version: 0,
  currency: 'USD',
  prices: [
    { billingDimension: 'sandbox_compute_runtime_gbs', effectiveFrom: EFFECTIVE_FROM, amount: '0.0000115', per: '1' },
    { billingDimension: 'sandbox_image_storage_gbs', effectiveFrom: EFFECTIVE_FROM, amount: '0.045', per: GB_MONTH },
    { billingDimension: 'sandbox_snapshot_storage_gbs', effectiveFrom: EFFECTIVE_FROM, amount: '0.20', per: GB_MONTH },
    { billingDimension: 'agent_compute_runtime_gbs', effectiveFrom: EFFECTIVE_FROM, amount: '0.0000115', per: '1' },
    { billingDimension: 'agent_image_storage_gbs', effectiveFrom: EFFECTIVE_FROM, amount: '0.045', per: GB_MONTH },
    { billingDimension: 'agent_async_requests_count', effectiveFrom: EFFECTIVE_FROM, amount: '0.20', per: '1000000' },
    { billingDimension: 'job_compute_runtime_gbs', effectiveFrom: EFFECTIVE_FROM, amount: '0.000006', per: '1' },
    { billingDimension: 'job_image_storage_gbs', effectiveFrom: EFFECTIVE_FROM, amount: '0.045', per: GB_MONTH },
    { billingDimension: 'mcp_server_compute_runtime_gbs', effectiveFrom: EFFECTIVE_FROM, amount: '0.000007', per: '1' },
    { billingDimension: 'mcp_server_image_storage_gbs', effectiveFrom: EFFECTIVE_FROM, amount: '0.045', per: GB_MONTH },
    { billingDimension: 'volume_storage_gbs', effectiveFrom: EFFECTIVE_FROM, amount: '0.12', per: GB_MONTH },
    { billingDimension: 'custom_domain_active_time_hours', effectiveFrom: EFFECTIVE_FROM, amount: '20', per: '730' },
  ],
} as const satisfies PriceBookFile;

export const DEFAULT_PRICE_BOOK = new PriceBook(DEFAULT_PRICE_BOOK_FILE);
