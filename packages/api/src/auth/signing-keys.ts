/**
 * The published keys of the authorisation server (JWKS). While it is away, tokens of known keys go on being accepted, and
 * no number of tokens with unknown keys makes many requests to it.
 */
import { type CryptoKey, createLocalJWKSet, errors, type FlattenedJWSInput, type JWSHeaderParameters } from 'jose';
import { z } from 'zod';

const TIMEOUT_MS = 3_000;
/** For all callers together, whether it succeeds or not. A new key is known this much later at most. */
const FETCH_INTERVAL_MS = 10_000;
/** Older keys are fetched again, because a key may have been withdrawn. */
const FRESH_MS = 600_000;

const keySet = z.object({ keys: z.array(z.record(z.string(), z.unknown())) });

export interface SigningKeysOptions {
  readonly jwksUrl: string;
  /** How long the keys are used after the last time that they could be fetched. */
  readonly keptMs: number;
  /** A clock that only moves forward: that of the machine may be set back, and the keys would never be old. */
  readonly elapsedMs: () => number;
  readonly onFailure: (error: unknown) => void;
  readonly onSuccess: () => void;
}

interface KnownKeys {
  readonly find: ReturnType<typeof createLocalJWKSet>;
  readonly fetchedAt: number;
}

export class SigningKeys {
  readonly #options: SigningKeysOptions;
  #known: KnownKeys | undefined;
  #attemptedAt = Number.NEGATIVE_INFINITY;
  #attempt: Promise<void> = Promise.resolve();
  /** Why the last attempt failed; undefined if it did not. */
  #failure: { readonly cause: unknown } | undefined;

  constructor(options: SigningKeysOptions) {
    this.#options = options;
  }

  /**
   * The key that a token names.
   * @throws JWKSNoMatchingKey when it is not published; SigningKeysAway when no keys are known
   */
  async find(header: JWSHeaderParameters, token: FlattenedJWSInput): Promise<CryptoKey> {
    const age = this.#ageOf(this.#known);
    if (age > FRESH_MS) {
      const refresh = this.#refresh();
      // Nobody waits, again and again, for a server that is known to be away.
      if (!this.#failure || age > this.#options.keptMs) await refresh;
    }
    const known = this.#usable();
    try {
      return await known.find(header, token);
    } catch (error) {
      if (!(error instanceof errors.JWKSNoMatchingKey)) throw error;
      await this.#refresh();
      return this.#usable().find(header, token);
    }
  }

  #usable(): KnownKeys {
    const known = this.#known;
    if (!known || this.#ageOf(known) > this.#options.keptMs) throw new SigningKeysAway(this.#failure?.cause);
    return known;
  }

  #ageOf(known: KnownKeys | undefined): number {
    return known ? this.#now() - known.fetchedAt : Number.POSITIVE_INFINITY;
  }

  /** Never rejects. Waits for an attempt that is under way; makes none when the last one was a moment ago. */
  #refresh(): Promise<void> {
    if (this.#now() - this.#attemptedAt >= FETCH_INTERVAL_MS) {
      this.#attemptedAt = this.#now();
      this.#attempt = this.#fetch();
    }
    return this.#attempt;
  }

  async #fetch(): Promise<void> {
    const { jwksUrl, onFailure, onSuccess } = this.#options;
    try {
      const signal = AbortSignal.timeout(TIMEOUT_MS);
      const headers = { accept: 'application/jwk-set+json, application/json' };
      const response = await fetch(jwksUrl, { signal, redirect: 'manual', headers });
      if (response.status !== 200) throw new Error(`${new URL(jwksUrl).host} answered ${response.status}, not 200`);
      const find = createLocalJWKSet(keySet.parse(await response.json()));
      this.#known = { find, fetchedAt: this.#now() };
      this.#failure = undefined;
      onSuccess();
    } catch (cause) {
      this.#failure = { cause };
      onFailure(cause);
    }
  }

  #now(): number {
    return this.#options.elapsedMs();
  }
}

/** There are no keys to check a token with, because they cannot be fetched. */
export class SigningKeysAway extends Error {
  override readonly name = 'SigningKeysAway';

  constructor(cause: unknown) {
    super('the signing keys cannot be fetched', { cause });
  }
}
