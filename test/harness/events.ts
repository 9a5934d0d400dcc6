/** Fixed events: as producers send them, as they are stored, and a price book for them. */
import { randomUUID } from 'node:crypto';
import { writeFile } from 'node:fs/promises';
import { DEFAULT_PRICE_BOOK_FILE, type UsageEventInput } from '@meterline/catalog';
import type { PricedEvent } from '@meterline/warehouse';

const SANDBOX = 'sandbox_compute_runtime_gbs';

/** Event number n, always the same: one GB-second of a sandbox, one second later than event n - 1. */
export function usageEvent(n: number, changes: Partial<UsageEventInput> = {}): UsageEventInput {
  return {
    eventId: `0190c5e4-7b1a-7def-8abc-${n.toString(16).padStart(12, '0')}`,
    accountId: 'acme',
    workspace: 'prod',
    resourceType: 'sandbox',
    resourceName: 'builder',
    billingDimension: SANDBOX,
    usage: 1,
    timestamp: new Date(Date.UTC(2026, 0, 1) + n * 1_000).toISOString(),
    ...changes,
  };
}

/** As producers write it, with its decimals as text. */
export const SANDBOX_EVENT = usageEvent(0x123456789ab, { usage: '12.5', timestamp: '2026-01-01T00:00:00.123Z' });

export function usageEvents(first: number, count: number): UsageEventInput[] {
  return Array.from({ length: count }, (_, index) => usageEvent(first + index));
}

/** A new event: one GB-second of a sandbox for one dollar on 1 October 2025, with the changes of a test. */
export function pricedEvent(changes: Partial<PricedEvent> = {}): PricedEvent {
  return {
    eventId: randomUUID(),
    accountId: 'acme',
    workspace: 'production',
    resourceType: 'sandbox',
    resourceName: 'builder',
    resourceUuid: '',
    billingDimension: SANDBOX,
    usage: 10n ** 9n,
    timestamp: Date.UTC(2025, 9, 1),
    revision: 0,
    voided: false,
    cost: 10n ** 12n,
    priceRevision: 0,
    priceBook: 0,
    ...changes,
  };
}

/** `scaled('1.5', 9)` is 1_500_000_000n. */
function scaled(text: string, scale: number): bigint {
  const [integer = '', fraction = ''] = text.split('.');
  return BigInt(integer + fraction.padEnd(scale, '0'));
}

export interface EventSketch extends Partial<Omit<PricedEvent, 'usage' | 'cost' | 'timestamp'>> {
  /** RFC 3339 */
  readonly at?: string;
  readonly usage?: string;
  readonly cost?: string;
}

let events = 0;

/** A new event of 1 GB-second for 1 USD on the same day, with the changes of the sketch. */
export function event({ at = '2025-10-01T10:30:00Z', usage = '1', cost = '1', ...fields }: EventSketch): PricedEvent {
  events += 1;
  return pricedEvent({
    eventId: `00000000-0000-7000-8000-${String(events).padStart(12, '0')}`,
    workspace: 'main',
    resourceName: 'box',
    resourceUuid: 'u-1',
    timestamp: Date.parse(at),
    usage: scaled(usage, 9),
    cost: scaled(cost, 12),
    ...fields,
  });
}

/** Writes the built-in price book with another price of a sandbox's compute. @param amount in USD per GB-second, as decimal text; 0.0000115 is built in */
export async function writePriceBook(
  path: string,
  version: number,
  amount: string,
  effectiveFrom = '1970-01-01T00:00:00Z',
): Promise<string> {
  const prices = DEFAULT_PRICE_BOOK_FILE.prices.map((price) =>
    price.billingDimension === SANDBOX ? { ...price, amount, effectiveFrom } : price,
  );
  await writeFile(path, JSON.stringify({ ...DEFAULT_PRICE_BOOK_FILE, version, prices }));
  return path;
}
