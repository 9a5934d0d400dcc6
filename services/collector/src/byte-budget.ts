/**
 * The in-flight byte budget: a bound on what clients have sent that is not answered, and on responses that they have not read, in all and
 * of one account. Bytes are counted as they arrive, so a client that announces much and sends little takes little. Where there is no room,
 * the account with the most bytes gives up requests that wait for their own client or for their turn: bodies that come slowly, or
 * never, do not keep another account out.
 */
import { type ApiError, tooMany, unavailable } from '@meterline/api/http/errors';

interface Account {
  bytes: number;
  /** The oldest first. */
  readonly reservations: Set<Reservation>;
}

export class ByteBudget {
  readonly #most: number;
  readonly #ofOneAccount: number;
  readonly #accounts = new Map<string, Account>();
  #total = 0;

  /** @param accountShare the share of the bound in all that one account may take */
  constructor(most: number, accountShare: number) {
    this.#most = most;
    this.#ofOneAccount = most * accountShare;
  }

  get total(): number {
    return this.#total;
  }

  /**
   * Room for one request, nothing of which is taken yet.
   * @param announced how much it says that it will take
   * @throws ApiError `server_busy`, `too_many_bytes_in_flight` where there is none
   */
  open(account: string, announced = 0): Reservation {
    const known = this.#accounts.get(account) ?? { bytes: 0, reservations: new Set() };
    if (known.bytes + announced > this.#ofOneAccount) throw tooMuchInFlight(known.bytes);
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

  /** Requests of the account that still wait, the newest first, make room for one that is being worked on: else none would ever end. */
  #requireShare(account: Account, bytes: number, requesting: Reservation): void {
    while (account.bytes + bytes > this.#ofOneAccount) {
      const waiting = [...account.reservations].findLast((other) => other.state === 'waiting' && other.bytes > 0);
      if (requesting.state === 'waiting' || !waiting) throw tooMuchInFlight(account.bytes);
      waiting.end(tooMuchInFlight(account.bytes));
      waiting.release();
    }
  }

  #makeRoom(account: Account, bytes: number): void {
    while (this.#total + bytes > this.#most) {
      const other = this.#mostThatMayEnd(account.bytes + bytes);
      if (!other) {
        throw unavailable('server_busy', 'Too much is being received at the moment; send it again shortly.');
      }
      other.end(givenUp());
      other.release();
    }
  }

  /** @returns the oldest request that may be given up, of the account with the most bytes: of none that has no more than this */
  #mostThatMayEnd(bytes: number): Reservation | undefined {
    let most = bytes;
    let found: Reservation | undefined;
    for (const account of this.#accounts.values()) {
      if (account.bytes <= most) continue;
      for (const reservation of account.reservations) {
        if (reservation.state === 'worked on' || reservation.bytes === 0) continue;
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

/** What one request holds. Once it is released it holds nothing: what came later would be counted for ever. */
export class Reservation {
  /** A request that waits, for its client or its turn, can be given up; and one whose client does not read the response, for others. */
  state: 'waiting' | 'worked on' | 'responding' = 'waiting';
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

  /** Is aborted, with the error to answer, when the request is given up or has failed while it waits. */
  get signal(): AbortSignal {
    return this.#ended.signal;
  }

  end(reason: unknown): void {
    this.#ended.abort(reason);
  }

  /** Holds this many bytes from now on. @throws ApiError `server_busy`, `too_many_bytes_in_flight`; it then holds what it did */
  resize(bytes: number): void {
    if (this.#isReleased) return;
    if (bytes > this.#bytes) this.#budget.makeRoom(bytes - this.#bytes);
    this.become(bytes);
  }

  /** Holds this many bytes from now on, whatever the bounds say: it is too late to refuse. */
  become(bytes: number): void {
    if (this.#isReleased) return;
    this.#budget.add(bytes - this.#bytes);
    this.#bytes = bytes;
  }

  /** May be called twice. */
  release(): void {
    if (this.#isReleased) return;
    this.become(0);
    this.#isReleased = true;
    this.#budget.release();
  }
}

function tooMuchInFlight(bytes: number): ApiError {
  const message = `${bytes} bytes of requests of this account, or of this key of all accounts, are not answered yet, or their responses not read; send fewer at once.`;
  return tooMany('too_many_bytes_in_flight', message);
}

function givenUp(): ApiError {
  const message =
    'The request was given up, because others needed the room that requests of this account or key take; send it again, or fewer at once.';
  return unavailable('server_busy', message);
}
