/**
 * Caches first pages of metrics for requests that allow cached responses with `Cache-Control: max-age=N` (RFC 9111, section 5.2.1.1). The
 * age of a response counts from before its data was read. So a response to a request with max-age=N contains every event that was
 * acknowledged at least N seconds ago. Each process has its own cache.
 */
import { ApiError, ClientGone } from '@meterline/api/http/errors';
import { instruments } from '@meterline/service/metrics';
import { LRUCache } from 'lru-cache';
import type { Registry } from 'prom-client';

export interface CachedResponse {
  readonly body: Buffer;
  readonly etag: string;
}

/** The source of a response: the cache (`hit`), a concurrent request that was already computing it (`shared`), or a new computation. */
const CACHE_RESULTS = ['hit', 'shared', 'computed'] as const;
export type CacheResult = (typeof CACHE_RESULTS)[number];

const MAX_SECONDS = 300;
const ACCOUNT_SHARE = 1 / 4;
/** Approximate memory of an entry without its body and key. */
const ENTRY_BYTES = 500;

export interface FoundResponse {
  readonly response: CachedResponse;
  /** Undefined if the response was computed for this request. */
  readonly ageSeconds: number | undefined;
}

interface Dated {
  /** A time before the response's data was read. */
  readonly startedAt: number;
}

interface Entry extends CachedResponse, Dated {
  readonly account: string;
}

interface AccountEntries {
  bytes: number;
  /** The size of each entry in bytes, by cache key, oldest first. */
  readonly sizes: Map<string, number>;
}

interface InFlight extends Dated {
  readonly response: Promise<CachedResponse>;
}

export class ResponseCache {
  readonly #entries: LRUCache<string, Entry> | undefined;
  readonly #accounts = new Map<string, AccountEntries>();
  readonly #inFlight = new Map<string, InFlight>();
  readonly #most: number;
  readonly #observe: (result: CacheResult) => void;
  readonly #now: () => number;

  /** A `maxBytes` of 0 disables the cache. `now` returns milliseconds of a monotonic clock. */
  constructor(
    maxBytes: number,
    observe: (result: CacheResult) => void = () => undefined,
    now = () => performance.now(),
  ) {
    this.#most = maxBytes * ACCOUNT_SHARE;
    this.#observe = observe;
    this.#now = now;
    if (maxBytes === 0) return;
    this.#entries = new LRUCache<string, Entry>({
      maxSize: maxBytes,
      sizeCalculation: sizeOf,
      ttl: MAX_SECONDS * 1000,
      ttlAutopurge: true,
      perf: { now },
      dispose: ({ account }, key) => this.#forget(account, key),
    });
  }

  get bytes(): number {
    return this.#entries?.calculatedSize ?? 0;
  }

  /**
   * Returns a response that is at most `maxAgeSeconds` old, from memory or from a concurrent request. If there is none, or if
   * `maxAgeSeconds` is 0, computes a response with `work`. Throws the error of `work`.
   */
  async get(
    account: string,
    key: string,
    maxAgeSeconds: number,
    work: () => Promise<CachedResponse>,
  ): Promise<FoundResponse> {
    const now = this.#now();
    const ageSeconds = ({ startedAt }: Dated) => (now - startedAt) / 1000;
    const isUsable = (found: Dated) => maxAgeSeconds > 0 && ageSeconds(found) <= maxAgeSeconds;
    const entry = this.#entries?.get(key);
    if (entry && isUsable(entry)) {
      this.#observe('hit');
      return { response: entry, ageSeconds: ageSeconds(entry) };
    }
    const inFlight = this.#inFlight.get(key);
    if (inFlight && isUsable(inFlight)) {
      try {
        const response = await inFlight.response;
        this.#observe('shared');
        return { response, ageSeconds: ageSeconds(inFlight) };
      } catch (error) {
        // The client of the computing request has disconnected. One of the waiting requests now computes the response for all of them.
        if (error instanceof ClientGone) return this.get(account, key, maxAgeSeconds, work);
        // If only the other request was rate-limited, compute the response here. Any other failure would affect this request too.
        if (!isRateLimited(error)) throw error;
      }
    }
    return { response: await this.#compute(account, key, work), ageSeconds: undefined };
  }

  async #compute(account: string, key: string, work: () => Promise<CachedResponse>): Promise<CachedResponse> {
    this.#observe('computed');
    const startedAt = this.#now();
    const response = work();
    this.#inFlight.set(key, { startedAt, response });
    try {
      const { body, etag } = await response;
      this.#keep(key, { account, body, etag, startedAt });
      return { body, etag };
    } finally {
      if (this.#inFlight.get(key)?.response === response) this.#inFlight.delete(key);
    }
  }

  #keep(key: string, entry: Entry): void {
    const known = this.#entries?.peek(key);
    // A computation that started later may have finished earlier. Keep its response, which has newer data.
    if (!this.#entries || (known && known.startedAt > entry.startedAt)) return;
    const size = sizeOf(entry, key);
    if (size > this.#most) return;
    this.#entries.set(key, entry);
    const ofAccount = this.#accounts.get(entry.account) ?? { bytes: 0, sizes: new Map<string, number>() };
    this.#accounts.set(entry.account, ofAccount);
    ofAccount.sizes.set(key, size);
    ofAccount.bytes += size;
    for (const oldest of ofAccount.sizes.keys()) {
      if (ofAccount.bytes <= this.#most) return;
      this.#entries.delete(oldest);
    }
  }

  #forget(account: string, key: string): void {
    const ofAccount = this.#accounts.get(account);
    if (!ofAccount) return;
    ofAccount.bytes -= ofAccount.sizes.get(key) ?? 0;
    ofAccount.sizes.delete(key);
    if (ofAccount.sizes.size === 0) this.#accounts.delete(account);
  }
}

function isRateLimited(error: unknown): boolean {
  return error instanceof ApiError && (error.code === 'too_many_statements' || error.code === 'overloaded');
}

function sizeOf({ body }: CachedResponse, key: string): number {
  return body.length + 2 * key.length + ENTRY_BYTES;
}

/** A directive of `Cache-Control`: a name with an optional value, which may be quoted (RFC 9111, section 5.2). */
const DIRECTIVE = /^([a-z-]+)(?:="?(\d+)"?)?$/;

/**
 * Returns the maximum age in seconds that a request allows for a cached response. Returns 0 without `max-age`, with an unreadable value,
 * and with `no-cache` or `no-store`. The response must then be computed.
 */
export function allowedAgeSeconds(cacheControl: string | undefined): number {
  const directives = (cacheControl ?? '').toLowerCase().split(',');
  let seconds = 0;
  for (const directive of directives) {
    const [, name, value] = DIRECTIVE.exec(directive.trim()) ?? [];
    if (name === 'no-cache' || name === 'no-store') return 0;
    if (name === 'max-age') seconds = Math.min(Number(value ?? 0), MAX_SECONDS);
  }
  return seconds;
}

export function measuredCache(registry: Registry, maxBytes: number): ResponseCache {
  const { counter, readAtScrape } = instruments(registry);
  const results = counter(
    'meterline_response_cache_total',
    'First pages of metrics: from memory (hit), from a concurrent request (shared), or computed.',
    'result',
  );
  for (const result of CACHE_RESULTS) results.inc({ result }, 0);
  const cache = new ResponseCache(maxBytes, (result) => results.inc({ result }));
  readAtScrape('meterline_response_cache_bytes', 'Memory of the cached responses.', () => cache.bytes);
  return cache;
}
