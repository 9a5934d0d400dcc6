/**
 * The oracle: what Meterline must answer, computed in memory, event by event, with exact arithmetic. Written from the
 * specification and the design alone; it shares no code with the product, so that both are unlikely to have the same fault.
 */
import { isDeepStrictEqual } from 'node:util';
import { hourOf } from './calendar.js';
import {
  COST_DECIMALS,
  costUnder,
  EXAMPLE_BOOK,
  type OraclePriceBook,
  USAGE_DECIMALS,
  understand,
} from './event-rules.js';
import { printDecimal } from './exact.js';
import {
  type OracleQuery,
  type OracleRole,
  type PricedPayload,
  responsePages,
  responseResourceTypes,
} from './response.js';

export type { OraclePriceBook } from './event-rules.js';
export { maskedPages, type OracleQuery, type OracleRole } from './response.js';

/** The most outcomes of contested events that are tried. */
const MAX_WORLDS = 4_096;

/** What is stored of an identity: (account, event id, UTC hour). */
export interface Stored {
  readonly accountId: string;
  readonly eventId: string;
  readonly hour: number;
  readonly revision: number;
  /** The version of the price book. */
  readonly book: number;
  /** The payloads of the highest revision and its oldest price book; if producers sent several, one of them is stored. */
  readonly payloads: readonly PricedPayload[];
  /** The payloads of the same rank that have lost; they never win later. */
  readonly beaten: readonly PricedPayload[];
}

export interface Totals {
  readonly events: number;
  /** Exact decimals; usage is summed over all units. */
  readonly usage: string;
  readonly cost: string;
}

export class Oracle {
  readonly #identities = new Map<string, Stored>();
  readonly #book: OraclePriceBook;

  constructor(book: OraclePriceBook = EXAMPLE_BOOK, known: readonly Stored[] = []) {
    this.#book = book;
    for (const identity of known) this.#identities.set(keyOf(identity), identity);
  }

  /**
   * Accepts or rejects an event as a producer sends it, in any order and any number of times.
   * @param now the worker's clock; it only decides whether the event lies in the future
   */
  accept(event: unknown, now = Date.now()): 'accepted' | 'rejected' {
    const understood = understand(event, now);
    if (!understood) return 'rejected';
    const { accountId, eventId, revision, payload } = understood;
    const cost = costUnder(this.#book, { accountId, ...payload });
    if (cost === undefined) return 'rejected';
    const hour = hourOf(payload.timestamp);
    const payloads = [{ ...payload, account: accountId, cost }];
    this.#claim({ accountId, eventId, hour, revision, book: this.#book.version, payloads, beaten: [] });
    return 'accepted';
  }

  /** Highest revision, then the oldest price book. Different payloads of the same rank are a contest. */
  #claim(next: Stored): void {
    const known = this.#identities.get(keyOf(next));
    const order = known ? next.revision - known.revision || known.book - next.book : 1;
    if (!known || order > 0) this.#identities.set(keyOf(next), next);
    if (!known || order !== 0) return;
    const news = next.payloads.filter(
      (payload) => ![...known.payloads, ...known.beaten].some((old) => isSame(old, payload)),
    );
    this.#identities.set(keyOf(next), { ...known, payloads: [...known.payloads, ...news] });
  }

  /** Every identity of all accounts. */
  stored(): Stored[] {
    return [...this.#identities.values()];
  }

  /**
   * Every possible outcome of the accounts' contests: one oracle for each, with these accounts only.
   * All responses of the service, now and later, must agree with the same one of them.
   */
  worlds(...accountIds: readonly string[]): Oracle[] {
    let worlds: Stored[][] = [[]];
    for (const identity of this.#of(accountIds)) {
      const outcomes = identity.payloads.map((winner) => {
        const losers = identity.payloads.filter((other) => other !== winner);
        return { ...identity, payloads: [winner], beaten: [...identity.beaten, ...losers] };
      });
      worlds = worlds.flatMap((world) => outcomes.map((outcome) => [...world, outcome]));
      if (worlds.length > MAX_WORLDS) throw new Error(`${accountIds} have too many contested events`);
    }
    return worlds.map((world) => new Oracle(this.#book, world));
  }

  /**
   * The bodies of all pages, of an account or of several, their cursors masked as by `maskedPages`.
   * @throws when events are contested: see worlds
   */
  pages(accounts: string | readonly string[], query: OracleQuery, role?: OracleRole): string[] {
    return responsePages(this.#counting([accounts].flat()), query, role);
  }

  /** The body of the resource types' enum. @throws when events are contested: see worlds */
  resourceTypes(accountId: string, query: OracleQuery): string {
    return responseResourceTypes(this.#counting([accountId]), query);
  }

  /** The payloads that count for the account, over all time. @throws when events are contested: see worlds */
  totals(accountId: string): Totals {
    const counting = this.#counting([accountId]);
    const sum = (amount: 'usage' | 'cost') => counting.reduce((total, event) => total + event[amount], 0n);
    return {
      events: counting.length,
      usage: printDecimal(sum('usage'), USAGE_DECIMALS),
      cost: printDecimal(sum('cost'), COST_DECIMALS),
    };
  }

  #counting(accountIds: readonly string[]): PricedPayload[] {
    const payloads = this.#of(accountIds).flatMap((identity) => identity.payloads);
    const contested = payloads.length - this.#of(accountIds).length;
    if (contested > 0) throw new Error(`${contested} events of ${accountIds} are contested: ask each of worlds()`);
    return payloads.filter(({ voided }) => !voided);
  }

  #of(accountIds: readonly string[]): Stored[] {
    return this.stored().filter(({ accountId }) => accountIds.includes(accountId));
  }
}

function keyOf({ accountId, eventId, hour }: Pick<Stored, 'accountId' | 'eventId' | 'hour'>): string {
  return JSON.stringify([accountId, eventId, hour]);
}

/** What was sent is the same; it may have another price. */
function isSame(a: PricedPayload, b: PricedPayload): boolean {
  return isDeepStrictEqual({ ...a, cost: 0n }, { ...b, cost: 0n });
}
