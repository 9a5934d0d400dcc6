/**
 * Limits the bytes that requests and responses hold in memory, both for the process and for each account. Bytes are counted only as they arrive,
 * so a client that announces a large body but sends little also holds little. When the process has no room left, the budget cancels requests of
 * the account that holds the most bytes, so that slow bodies of one account cannot lock out other accounts. It cancels only requests that wait
 * for their client or for a permit to do expensive work.
 */
import { type ApiError, tooMany, unavailable } from '../http/errors.js';

interface Account {
  bytes: number;
  /** Ordered from oldest to newest. */
  readonly reservations: Set<Reservation>;
}

export interface BudgetErrors {
  readonly accountFull: (bytes: number) => ApiError;
  readonly processFull: () => ApiError;
}

export class ByteBudget {
  readonly accountBytes: number;
  readonly #maxBytes: number;
  readonly #errors: BudgetErrors;
  readonly #accounts = new Map<string, Account>();
  #total = 0;

  constructor(maxBytes: number, accountShare: number, errors = REQUEST_ERRORS) {
    this.accountBytes = maxBytes * accountShare;
    this.#maxBytes = maxBytes;
    this.#errors = errors;
  }

  get total(): number {
    return this.#total;
  }

  /** Starts counting a request's bytes. @throws ApiError if the account has no room for the announced size, or the process has none at all */
  open(id: string, announced = 0): Reservation {
    const account = this.#accounts.get(id) ?? { bytes: 0, reservations: new Set() };
    if (account.bytes + announced > this.accountBytes) throw this.#errors.accountFull(account.bytes);
    this.#makeRoom(account, 0);
    const reservation: Reservation = new Reservation({
      makeRoom: (bytes) => {
        this.#requireShare(account, bytes, reservation);
        this.#makeRoom(account, bytes);
      },
      add: (bytes) => {
        account.bytes += bytes;
        this.#total += bytes;
      },
      release: () => {
        account.reservations.delete(reservation);
        if (account.reservations.size === 0) this.#accounts.delete(id);
      },
    });
    account.reservations.add(reservation);
    this.#accounts.set(id, account);
    return reservation;
  }

  /**
   * Throws if the bytes exceed the account's share. If the request that needs them is already in progress, waiting requests of the same account
   * are first canceled, newest first. Otherwise, requests of one account could block each other, and none would ever complete.
   */
  #requireShare(account: Account, bytes: number, requesting: Reservation): void {
    while (account.bytes + bytes > this.accountBytes) {
      const waiting = [...account.reservations].findLast((other) => other.state === 'waiting' && other.bytes > 0);
      if (requesting.state === 'waiting' || !waiting) throw this.#errors.accountFull(account.bytes);
      waiting.end(this.#errors.accountFull(account.bytes));
      waiting.release();
    }
  }

  #makeRoom(account: Account, bytes: number): void {
    while (this.#total + bytes > this.#maxBytes) {
      const victim = this.#findVictim(account.bytes + bytes);
      if (!victim) throw this.#errors.processFull();
      victim.end(canceled());
      victim.release();
    }
  }

  /** Returns the oldest request that may be canceled in the account with the most bytes, if that account holds more than `bytes`. */
  #findVictim(bytes: number): Reservation | undefined {
    let most = bytes;
    let victim: Reservation | undefined;
    for (const account of this.#accounts.values()) {
      if (account.bytes <= most) continue;
      for (const reservation of account.reservations) {
        if (reservation.state === 'in progress' || reservation.bytes === 0) continue;
        [most, victim] = [account.bytes, reservation];
        break;
      }
    }
    return victim;
  }
}

interface Bookkeeping {
  readonly makeRoom: (bytes: number) => void;
  readonly add: (bytes: number) => void;
  readonly release: () => void;
}

/** Counts the bytes of one request. Changes after its release are ignored, because nothing would ever subtract those bytes again. */
export class Reservation {
  /** `waiting`: for its client or for a permit. `responding`: until its client has read the response. In both states, the budget may cancel it. */
  state: 'waiting' | 'in progress' | 'responding' = 'waiting';
  readonly #budget: Bookkeeping;
  readonly #ended = new AbortController();
  #bytes = 0;
  #isReleased = false;

  constructor(budget: Bookkeeping) {
    this.#budget = budget;
  }

  get bytes(): number {
    return this.#bytes;
  }

  /** Aborted when the request is canceled or fails while it waits. The abort reason is the error to send to the client. */
  get signal(): AbortSignal {
    return this.#ended.signal;
  }

  end(reason: unknown): void {
    this.#ended.abort(reason);
  }

  /** Changes the size. @throws ApiError if there is no room; the size then stays unchanged */
  resize(bytes: number): void {
    if (this.#isReleased) return;
    if (bytes > this.#bytes) this.#budget.makeRoom(bytes - this.#bytes);
    this.become(bytes);
  }

  /** Changes the size without checking the limits. Used for bytes that can no longer be rejected. */
  become(bytes: number): void {
    if (this.#isReleased) return;
    this.#budget.add(bytes - this.#bytes);
    this.#bytes = bytes;
  }

  release(): void {
    if (this.#isReleased) return;
    this.become(0);
    this.#isReleased = true;
    this.#budget.release();
  }
}

const REQUEST_ERRORS: BudgetErrors = {
  accountFull: (bytes) =>
    tooMany(
      'too_many_bytes_in_flight',
      `This account, or this key for all accounts, has ${bytes} bytes of requests without a response and of unread responses; send fewer requests at once.`,
    ),
  processFull: () =>
    unavailable('server_busy', 'The service is receiving too much data; send the request again shortly.'),
};

function canceled(): ApiError {
  const message =
    'The request was canceled because other accounts needed the room that requests of this account or key take; send it again, or send fewer requests at once.';
  return unavailable('server_busy', message);
}
