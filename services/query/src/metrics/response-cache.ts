/**
 * The response cache: first pages of metrics, for requests that allow it with `Cache-Control: max-age=N` (RFC 9111, section
 * 5.2.1.1). The age of a response counts from the moment before anything that it is made of was read, so what a request with N
 * gets holds every event that was acknowledged N seconds before it. Nothing outside this process knows of the cache.
 */
import { ApiError, ClientGone } from '@meterline/api/http/errors';
import { instruments } from '@meterline/service/metrics';
import { LRUCache } from 'lru-cache';
import type { Registry } from 'prom-client';

export interface CachedResponse {
  /** JSON. */
  readonly body: Buffer;
  readonly etag: string;
}

/** What became of a request for a first page. `shared`: it got the response that another request was computing. */
const CACHE_RESULTS = ['hit', 'shared', 'computed'] as const;
export type CacheResult = (typeof CACHE_RESULTS)[number];

/** The oldest response that a request can ask for. */
const MOST_SECONDS = 300;
/** The most of the memory that one account may have. */
const ACCOUNT_SHARE = 1 / 4;
/** About what an entry takes beside its body and its key. */
const ENTRY_BYTES = 500;

export interface FoundResponse {
  readonly response: CachedResponse;
  /** Undefined: it was computed for this request. */
  readonly ageSeconds: number | undefined;
}

interface Dated {
  /** Before anything was read that the response is made of. */
  readonly startedAt: number;
}

interface Entry extends CachedResponse, Dated {
  readonly account: string;
}

/** What one account has in memory. */
interface AccountEntries {
  bytes: number;
  /** By key, the oldest first. */
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

  /**
   * @param maxBytes the most bytes of memory; 0: nothing is kept
   * @param now milliseconds of a clock that never goes back
   */
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
      ttl: MOST_SECONDS * 1000,
      ttlAutopurge: true,
      perf: { now },
      dispose: ({ account }, key) => this.#forget(account, key),
    });
  }

  get bytes(): number {
    return this.#entries?.calculatedSize ?? 0;
  }

  /**
   * A response from memory or from another request that computes it at the moment, as far as its age allows it, or one that is
   * computed now.
   * @param maxAgeSeconds 0: it is computed now
   * @throws what the work fails with
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
        // The client has gone that it was computed for: one of those that wait computes it for the others.
        if (error instanceof ClientGone) return this.get(account, key, maxAgeSeconds, work);
        // What one request may not do because of its limits says nothing about the others; any other failure would be theirs, too.
        if (!isRefusal(error)) throw error;
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
    // A response whose computation began later may have been computed sooner.
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

function isRefusal(error: unknown): boolean {
  return error instanceof ApiError && (error.code === 'too_many_statements' || error.code === 'overloaded');
}

function sizeOf({ body }: CachedResponse, key: string): number {
  return body.length + 2 * key.length + ENTRY_BYTES;
}

/** A directive of `Cache-Control`: a name, and perhaps a value, which may be quoted (RFC 9111, section 5.2). */
const DIRECTIVE = /^([a-z-]+)(?:="?(\d+)"?)?$/;

/**
 * How old a response may be that the request gets: 0, the default, is a response that is computed for it. What cannot be read, and
 * `no-cache` and `no-store`, mean 0, too.
 */
export function allowedAgeSeconds(cacheControl: string | undefined): number {
  const directives = (cacheControl ?? '').toLowerCase().split(',');
  let seconds = 0;
  for (const directive of directives) {
    const [, name, value] = DIRECTIVE.exec(directive.trim()) ?? [];
    if (name === 'no-cache' || name === 'no-store') return 0;
    if (name === 'max-age') seconds = Math.min(Number(value ?? 0), MOST_SECONDS);
  }
  return seconds;
}

/** A cache whose results and memory are measured. @param maxBytes as for {@link ResponseCache} */
export function measuredCache(registry: Registry, maxBytes: number): ResponseCache {
  const { counter, readAtScrape } = instruments(registry);
  const results = counter(
    'meterline_response_cache_total',
    'First pages of metrics that came from memory (hit), from a request that computed them already (shared), or were computed.',
    'result',
  );
  for (const result of CACHE_RESULTS) results.inc({ result }, 0);
  const cache = new ResponseCache(maxBytes, (result) => results.inc({ result }));
  readAtScrape('meterline_response_cache_bytes', 'Memory of the responses that are kept.', () => cache.bytes);
  return cache;
}
