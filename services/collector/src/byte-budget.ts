/**
 * Limits the bytes in flight, per process and per account: requests without a response, and responses that clients have not read yet.
 *
 * Bytes are counted as they arrive, so a client that announces a large body but sends little holds little. If the budget is exhausted, the
 * account with the most bytes loses requests that still wait for their client or for a permit. Slow bodies of one account therefore
 * cannot keep out other accounts.
 */
import { type ApiError, tooMany, unavailable } from '@meterline/api/http/errors';

interface Account {
  bytes: number;
  /** Oldest first. */
  readonly reservations: Set<Reservation>;
}

export class ByteBudget {
  readonly #maxBytes: number;
  readonly #maxAccountBytes: number;
  readonly #accounts = new Map<string, Account>();
  #total = 0;

  /** @param accountShare the share of `maxBytes` that one account may hold */
  constructor(maxBytes: number, accountShare: number) {
    this.#maxBytes = maxBytes;
    this.#maxAccountBytes = maxBytes * accountShare;
  }

  get total(): number {
    return this.#total;
  }

  /**
   * Opens a reservation of 0 bytes for a request.
   * @param announced the Content-Length, which must fit into the account's share
   * @throws ApiError `server_busy` or `too_many_bytes_in_flight` if the budget is exhausted
   */
  open(account: string, announced = 0): Reservation {
    const known = this.#accounts.get(account) ?? { bytes: 0, reservations: new Set() };
    if (known.bytes + announced > this.#maxAccountBytes) throw tooMuchInFlight(known.bytes);
    this.#makeRoom(known, 0);
    const reservation: Reservation = new Reservation({
      makeRoom: (bytes) => {
        this.#requireShare(known, bytes, reservation);
        this.#makeRoom(known, bytes);
      },
      add: (bytes) => {
        known.bytes += bytes;
        this.#total += bytes;
      },
      release: () => {
        known.reservations.delete(reservation);
        if (known.reservations.size === 0) this.#accounts.delete(account);
      },
    });
    known.reservations.add(reservation);
    this.#accounts.set(account, known);
    return reservation;
  }

  /**
   * Ends waiting requests of the account, newest first, to make room for a request in progress. Otherwise waiting requests could keep
   * all requests of the account from finishing.
   */
  #requireShare(account: Account, bytes: number, requesting: Reservation): void {
    while (account.bytes + bytes > this.#maxAccountBytes) {
      const waiting = [...account.reservations].findLast((other) => other.state === 'waiting' && other.bytes > 0);
      if (requesting.state === 'waiting' || !waiting) throw tooMuchInFlight(account.bytes);
      waiting.end(tooMuchInFlight(account.bytes));
      waiting.release();
    }
  }

  #makeRoom(account: Account, bytes: number): void {
    while (this.#total + bytes > this.#maxBytes) {
      const other = this.#nextToEnd(account.bytes + bytes);
      if (!other) {
        throw unavailable(
          'server_busy',
          'Too many requests are being received at the moment; send this request again shortly.',
        );
      }
      other.end(evicted());
      other.release();
    }
  }

  /** Returns the oldest request that may end, of the account with the most bytes, if that account holds more than `bytes`. */
  #nextToEnd(bytes: number): Reservation | undefined {
    let most = bytes;
    let found: Reservation | undefined;
    for (const account of this.#accounts.values()) {
      if (account.bytes <= most) continue;
      for (const reservation of account.reservations) {
        if (reservation.state === 'in progress' || reservation.bytes === 0) continue;
        [most, found] = [account.bytes, reservation];
        break;
      }
    }
    return found;
  }
}

interface Bookkeeping {
  readonly makeRoom: (bytes: number) => void;
  readonly add: (bytes: number) => void;
  readonly release: () => void;
}

/** The bytes of one request. A released reservation ignores changes, because nobody would release them again. */
export class Reservation {
  /** The budget may end requests in any state except `in progress`. */
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

  /** Aborted with the error to respond with when the request ends before it was processed. */
  get signal(): AbortSignal {
    return this.#ended.signal;
  }

  end(reason: unknown): void {
    this.#ended.abort(reason);
  }

  /** Changes the number of bytes. @throws ApiError `server_busy` or `too_many_bytes_in_flight`; the number is unchanged then */
  resize(bytes: number): void {
    if (this.#isReleased) return;
    if (bytes > this.#bytes) this.#budget.makeRoom(bytes - this.#bytes);
    this.become(bytes);
  }

  /** Changes the number of bytes regardless of the limits, because durable events need a response. */
  become(bytes: number): void {
    if (this.#isReleased) return;
    this.#budget.add(bytes - this.#bytes);
    this.#bytes = bytes;
  }

  /** Safe to call twice. */
  release(): void {
    if (this.#isReleased) return;
    this.become(0);
    this.#isReleased = true;
    this.#budget.release();
  }
}

function tooMuchInFlight(bytes: number): ApiError {
  const message = `This account, or this key for all accounts, has ${bytes} bytes in flight: requests without a response, and responses that were not read. Send fewer requests at once.`;
  return tooMany('too_many_bytes_in_flight', message);
}

function evicted(): ApiError {
  const message =
    'The request was canceled because this account or key has the most bytes in flight and others need room; send it again, with fewer requests at once.';
  return unavailable('server_busy', message);
}
