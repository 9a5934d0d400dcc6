/**
 * The way of an event that is as producers write them: from what JSON.parse made of it straight into the rows of an insert,
 * without bigints or an object of its own, which takes a fifth of the time (docs/decisions/0031). Whatever is unusual is
 * left to `parseUsageEvent`, and so is every refusal: this only says yes, or nothing. A property test holds the two to the
 * same rows.
 */
import {
  costOfInteger,
  DIMENSIONS,
  type EpochMs,
  hasMoreFields,
  isBillingDimension,
  isName,
  isRevision,
  MAX_CLOCK_SKEW_MS,
  type PriceBook,
  parseTimestamp,
  type Unit,
  type UsageEventField,
} from '@meterline/catalog';
import { MOST_USAGE_CHARACTERS, usualUsage } from '@meterline/catalog/bytes';
import { type EventRows, type Names, uuidCharacters } from '@meterline/warehouse';

export interface Desk {
  readonly book: PriceBook;
  /** For the rule "not more than 10 minutes in the future". */
  readonly now: EpochMs;
  readonly rows: EventRows;
}

/** @returns whether the event was added to the rows; the position is its index in the job */
export function addUsualEvent(input: unknown, position: number, { book, now, rows }: Desk): boolean {
  if (typeof input !== 'object' || input === null) return false;
  const event: Partial<Record<UsageEventField, unknown>> = input;
  const { eventId, accountId, billingDimension, revision = 0, void: voided = false } = event;
  if (typeof eventId !== 'string' || typeof accountId !== 'string' || typeof billingDimension !== 'string')
    return false;
  if (!isBillingDimension(billingDimension) || !isRevision(revision) || typeof voided !== 'boolean') return false;
  const { resourceType, unit } = DIMENSIONS[billingDimension];
  if (event.resourceType !== resourceType || hasMoreFields(event)) return false;

  const timestamp = typeof event.timestamp === 'string' ? parseTimestamp(event.timestamp) : undefined;
  if (timestamp === undefined || timestamp < 0 || timestamp > now + MAX_CLOCK_SKEW_MS) return false;
  const usage = usualUsageOf(event.usage, unit);
  if (usage === undefined) return false;
  const price = book.priceAt(accountId, billingDimension, timestamp);
  const cost = price && costOfInteger(usage, price);
  if (cost === undefined) return false;

  const { names } = rows;
  const account = numberOfName(names, accountId);
  const workspace = numberOfName(names, event.workspace);
  const resourceName = numberOfName(names, event.resourceName);
  const resourceUuid = numberOfName(names, event.resourceUuid ?? '');
  if (account === 0 || workspace === 0 || resourceName === 0) return false;
  if (resourceUuid === 0 && (event.resourceUuid ?? '') !== '') return false;
  // Listed, because spreading objects into one takes longer than all the rest.
  const numbered = {
    accountId: account,
    workspace,
    resourceType: names.numberOf(resourceType),
    resourceName,
    resourceUuid,
    billingDimension: names.numberOf(billingDimension),
    usage,
    timestamp,
    revision,
    voided,
    cost,
    priceRevision: 0,
    priceBook: book.version,
  };
  return rows.addNumbered(numbered, position, uuidCharacters(eventId));
}

/** 0, the number of the empty text, for what is no name. What has a number was checked when it got it. */
function numberOfName(names: Names, value: unknown): number {
  if (typeof value !== 'string') return 0;
  return names.known(value) ?? (isName(value) ? names.numberOf(value) : 0);
}

const characters = new Uint8Array(MOST_USAGE_CHARACTERS);

/** Of a value that was parsed. */
function usualUsageOf(usage: unknown, unit: Unit): number | undefined {
  // The decimal that JavaScript prints, as in decimalOfNumber; one with an exponent is unusual.
  const text = typeof usage === 'number' ? String(usage) : usage;
  if (typeof text !== 'string' || text.length > characters.length) return undefined;
  for (let at = 0; at < text.length; at += 1) {
    const code = text.charCodeAt(at);
    characters[at] = code < 128 ? code : 0;
  }
  return usualUsage(characters, 0, text.length, unit);
}
