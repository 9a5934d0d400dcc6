/**
 * A bound on what clients have sent that is not answered, and on answers that they have not read: in all and of one account.
 * Bytes are counted as they arrive, so a client that announces much and sends little takes little.
 */
import { ApiError, RETRY_AFTER_SECONDS, unavailable } from '@meterline/api';

/** Of the bound in all. */
const SHARE_OF_ONE_ACCOUNT = 1 / 4;

export class BytesUnderWay {
  readonly #most: number;
  readonly #ofAccounts = new Map<string, number>();
  #total = 0;

  constructor(most: number) {
    this.#most = most;
  }

  get total(): number {
    return this.#total;
  }

  /**
   * Room for one request, nothing of which is taken yet.
   * @throws ApiError `server_busy`, `too_much_under_way` where there is none
   */
  open(account: string): Holding {
    const holding = new Holding((bytes, isRefusable) => this.#add(account, bytes, isRefusable));
    holding.take(0);
    return holding;
  }

  #add(account: string, bytes: number, isRefusable: boolean): void {
    const mine = this.#ofAccounts.get(account) ?? 0;
    if (isRefusable) {
      if (mine + bytes > this.#most * SHARE_OF_ONE_ACCOUNT) throw tooMuchUnderWay(mine);
      if (this.#total + bytes > this.#most) {
        throw unavailable('server_busy', 'Too much is being received at the moment; send it again shortly.', undefined);
      }
    }
    this.#total += bytes;
    if (mine + bytes > 0) this.#ofAccounts.set(account, mine + bytes);
    else this.#ofAccounts.delete(account);
  }
}

/** What one request holds. Once it is released it holds nothing: what came later would be counted for ever. */
export class Holding {
  readonly #add: (bytes: number, isRefusable: boolean) => void;
  #held = 0;
  #isReleased = false;

  constructor(add: (bytes: number, isRefusable: boolean) => void) {
    this.#add = add;
  }

  /** @throws ApiError `server_busy`, `too_much_under_way` */
  take(bytes: number): void {
    if (this.#isReleased) return;
    this.#add(bytes, true);
    this.#held += bytes;
  }

  /** Of what it holds. */
  give(bytes: number): void {
    this.become(this.#held - bytes);
  }

  /** Holds this many bytes from now on. @throws ApiError `server_busy`, `too_much_under_way`; it then holds what it did */
  resize(bytes: number): void {
    if (bytes > this.#held) this.take(bytes - this.#held);
    else this.become(bytes);
  }

  /** Holds this many bytes from now on, whatever the bounds say: it is too late to refuse. */
  become(bytes: number): void {
    if (this.#isReleased) return;
    this.#add(bytes - this.#held, false);
    this.#held = bytes;
  }

  /** May be called twice. */
  release(): void {
    this.become(0);
    this.#isReleased = true;
  }
}

function tooMuchUnderWay(bytes: number): ApiError {
  const message = `${bytes} bytes of requests of this account are not answered yet, or their answers not read; send fewer at once.`;
  return new ApiError(429, 'too_much_under_way', message, { headers: { 'Retry-After': RETRY_AFTER_SECONDS } });
}
