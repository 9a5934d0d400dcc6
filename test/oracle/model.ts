/**
 * The oracle: what Meterline must answer, computed in memory, event by event, with exact arithmetic. Written from the
 * specification and the design alone; it shares no code with the product, so that both are unlikely to have the same fault.
 */

import { type Payload, understand } from '../model/event-rules.js';
import { answerPages, answerResourceTypes, type OracleQuery, type OracleRole, type PricedPayload } from './answer.js';
import { hourOf } from './calendar.js';
import { printDecimal } from './exact.js';
import { COST_DECIMALS, costUnder, EXAMPLE_BOOK, type OraclePriceBook, USAGE_DECIMALS } from './prices.js';

export type { OracleEvent } from '../model/event-rules.js';
export { maskCursor, type OracleQuery, type OracleRole } from './answer.js';
export { EXAMPLE_BOOK, type OraclePriceBook } from './prices.js';

/** The most outcomes of contested events that are tried for an account. */
const MAX_WORLDS = 4_096;

/** A payload that was sent for an identity. */
interface Claim {
  readonly revision: number;
  readonly book: number;
  readonly payload: PricedPayload;
}

/** One identity: (account, event id, UTC hour). */
interface Identity {
  readonly eventId: string;
  readonly hour: number;
  /** Payloads of the highest revision and its oldest price book. More than one only if producers sent different ones. */
  claims: readonly Claim[];
  /** Payloads of the same rank that have lost; they never win later. */
  beaten: readonly Payload[];
}

/** What is stored of an identity: one of the payloads. More than one if producers sent different ones under the same revision. */
export interface Stored {
  readonly accountId: string;
  readonly eventId: string;
  readonly hour: number;
  readonly revision: number;
  readonly payloads: readonly PricedPayload[];
}

export interface Totals {
  readonly events: number;
  /** Exact decimals; usage is summed over all units. */
  readonly usage: string;
  readonly cost: string;
}

export class Oracle {
  readonly #accounts = new Map<string, Map<string, Identity>>();
  #book: OraclePriceBook;

  constructor(book: OraclePriceBook = EXAMPLE_BOOK) {
    this.#book = book;
  }

  /** Prices all later events with this book; events that already have a price keep it. */
  useBook(book: OraclePriceBook): void {
    this.#book = book;
  }

  /**
   * Accepts or refuses an event as a producer sends it, in any order and any number of times.
   * @param now the worker's clock; it only decides whether the event lies in the future
   */
  accept(event: unknown, now = Date.now()): 'accepted' | 'refused' {
    const understood = understand(event, now);
    if (!understood) return 'refused';
    const { accountId, eventId, revision, payload } = understood;
    const cost = costUnder(this.#book, { accountId, ...payload });
    if (cost === undefined) return 'refused';
    const identity = this.#identity(accountId, eventId, hourOf(payload.timestamp));
    claim(identity, { revision, book: this.#book.version, payload: { ...payload, account: accountId, cost } });
    return 'accepted';
  }

  /** Every identity of all accounts. */
  stored(): Stored[] {
    return [...this.#accounts].flatMap(([accountId, identities]) =>
      [...identities.values()].map(({ eventId, hour, claims }) => ({
        ...{ accountId, eventId, hour, revision: claims[0]?.revision ?? 0 },
        payloads: claims.map(({ payload }) => payload),
      })),
    );
  }

  /**
   * Every possible outcome of the accounts' contests: one oracle for each, with these accounts only.
   * All answers of the service, now and later, must agree with the same one of them.
   */
  worlds(...accountIds: readonly string[]): Oracle[] {
    let worlds: Oracle[] = [new Oracle(this.#book)];
    for (const accountId of accountIds) {
      for (const identity of this.#identities(accountId)) {
        worlds = worlds.flatMap((world) =>
          identity.claims.map((winner) => world.#with(accountId, decided(identity, winner))),
        );
        if (worlds.length > MAX_WORLDS) throw new Error(`${accountId} has too many contested events`);
      }
    }
    return worlds;
  }

  /** The body of the first page, its cursor masked as by `maskCursor`. @throws when events are contested: see worlds */
  metrics(accountId: string, query: OracleQuery): string {
    return this.pages(accountId, query)[0] ?? '';
  }

  /** The bodies of all pages, of an account or of several. @throws when events are contested: see worlds */
  pages(accounts: string | readonly string[], query: OracleQuery, role?: OracleRole): string[] {
    const counting = [accounts].flat().flatMap((accountId) => this.#counting(accountId));
    return answerPages(counting, query, role);
  }

  /** The body of the resource types' enum. @throws when events are contested: see worlds */
  resourceTypes(accountId: string, query: OracleQuery): string {
    return answerResourceTypes(this.#counting(accountId), query);
  }

  /** The payloads that count for the account, over all time. @throws when events are contested: see worlds */
  totals(accountId: string): Totals {
    const counting = this.#counting(accountId);
    const sum = (amount: 'usage' | 'cost') => counting.reduce((total, event) => total + event[amount], 0n);
    return {
      events: counting.length,
      usage: printDecimal(sum('usage'), USAGE_DECIMALS),
      cost: printDecimal(sum('cost'), COST_DECIMALS),
    };
  }

  #counting(accountId: string): PricedPayload[] {
    const contested = this.#identities(accountId).filter(({ claims }) => claims.length > 1).length;
    if (contested > 0) throw new Error(`${contested} events of ${accountId} are contested: ask each of worlds()`);
    return this.#identities(accountId)
      .flatMap(({ claims }) => claims.map(({ payload }) => payload))
      .filter(({ voided }) => !voided);
  }

  #identities(accountId: string): Identity[] {
    return [...(this.#accounts.get(accountId)?.values() ?? [])];
  }

  #identity(accountId: string, eventId: string, hour: number): Identity {
    const account = this.#accounts.get(accountId) ?? new Map<string, Identity>();
    const key = keyOf(eventId, hour);
    const identity = account.get(key) ?? { eventId, hour, claims: [], beaten: [] };
    this.#accounts.set(accountId, account.set(key, identity));
    return identity;
  }

  /** The same with one identity more. */
  #with(accountId: string, identity: Identity): Oracle {
    const oracle = new Oracle(this.#book);
    for (const [account, identities] of this.#accounts) {
      oracle.#accounts.set(account, new Map([...identities].map(([key, each]) => [key, { ...each }])));
    }
    const known = oracle.#accounts.get(accountId) ?? new Map<string, Identity>();
    oracle.#accounts.set(accountId, known.set(keyOf(identity.eventId, identity.hour), identity));
    return oracle;
  }
}

function keyOf(eventId: string, hour: number): string {
  return `${eventId} ${hour}`;
}

/** Highest revision, then the oldest price book. Different payloads of the same rank are a contest. */
function claim(identity: Identity, next: Claim): void {
  const [first] = identity.claims;
  const order = first ? next.revision - first.revision || first.book - next.book : 1;
  if (order > 0) {
    identity.claims = [next];
    identity.beaten = [];
  }
  if (order !== 0) return;
  const known = [...identity.claims.map(({ payload }) => payload), ...identity.beaten];
  if (!known.some((payload) => isSame(payload, next.payload))) identity.claims = [...identity.claims, next];
}

function decided({ eventId, hour, claims, beaten }: Identity, winner: Claim): Identity {
  const losers = claims.filter((other) => other !== winner).map(({ payload }) => payload);
  return { eventId, hour, claims: [winner], beaten: [...beaten, ...losers] };
}

function isSame(a: Payload, b: Payload): boolean {
  return (
    a.workspace === b.workspace &&
    a.resourceType === b.resourceType &&
    a.resourceName === b.resourceName &&
    a.resourceUuid === b.resourceUuid &&
    a.billingDimension === b.billingDimension &&
    a.usage === b.usage &&
    a.timestamp === b.timestamp &&
    a.voided === b.voided
  );
}
