/**
 * Several queues in place of one, each under a prefix of its own: producers fill them in turn, and every worker consumes all of
 * them. The first has the name that one alone would have, so producers that know nothing of the others go on.
 */

const HASH_TAG = /^([^{]*\{[^}]+)\}/;

/**
 * The prefix with a hash tag: keys with the same one are on one node of a Redis Cluster, which scripts and transactions need.
 * Source: Redis Cluster specification, "Hash tags".
 */
export function hashTagged(prefix: string): string {
  return HASH_TAG.test(prefix) ? prefix : `{${prefix}}`;
}

/**
 * The prefix of a queue: `bull`, `{bull-1}`, `{bull-2}`, …, and in a Redis Cluster `{bull}`, `{bull-1}`, ….
 * @param shard from 0
 */
export function queuePrefixOf(prefix: string, shard: number, isCluster: boolean): string {
  const tagged = hashTagged(prefix);
  if (shard > 0) return tagged.replace(HASH_TAG, `$1-${shard}}`);
  return isCluster ? tagged : prefix;
}

/** The id of a job among those of all queues, as refusals name it. */
export function jobIdIn(shard: number, id = ''): string {
  return shard === 0 ? id : `${shard}:${id}`;
}

/** A queue that did not take a job is left alone for so long, while another is there. */
const LEFT_ALONE_MS = 2_000;

/** Whose turn it is among the queues. */
export class ShardTurns {
  readonly #awayUntil: number[];
  #last = -1;

  constructor(shards: number) {
    this.#awayUntil = Array.from({ length: shards }, () => 0);
  }

  /** @param nowMs a clock that never goes back */
  next(nowMs: number): number {
    const shards = this.#awayUntil.length;
    const inTurn = this.#awayUntil.map((_, n) => (this.#last + 1 + n) % shards);
    this.#last = inTurn.find((shard) => (this.#awayUntil[shard] ?? 0) <= nowMs) ?? inTurn[0] ?? 0;
    return this.#last;
  }

  /**
   * Writes to the queue whose turn it is, or if that fails to the next one: in two of them the same events are harmless.
   * @param withinMs after so long no other one is tried
   * @param now a clock that never goes back
   * @throws the last error
   */
  async write(work: (shard: number) => Promise<unknown>, withinMs: number, now: () => number): Promise<void> {
    const startedMs = now();
    for (let attempt = 1; ; attempt += 1) {
      const shard = this.next(now());
      try {
        await work(shard);
        this.took(shard);
        return;
      } catch (error) {
        this.failed(shard, now());
        if (attempt >= this.#awayUntil.length || now() - startedMs >= withinMs) throw error;
      }
    }
  }

  failed(shard: number, nowMs: number): void {
    this.#awayUntil[shard] = nowMs + LEFT_ALONE_MS;
  }

  took(shard: number): void {
    this.#awayUntil[shard] = 0;
  }
}
