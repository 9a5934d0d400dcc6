/**
 * Stamps: random texts in Redis by which a query process knows that an answer it has kept is still the answer. Each account has
 * two. `sealed` changes when the account's events change in hours that are sealed, or being sealed; `any` changes when any of
 * its events do. Both change for every account when a worker begins. "Changes" means that a key is removed: the next reader makes
 * a new one.
 *
 * - A **reader** reads the stamps, and only then asks ClickHouse. It keeps the answer with the stamp that it had read: `sealed` if the
 *   whole window lies below a `sealedUntil` that it knew before it asked, else `any`. A request takes a kept answer only if
 *   the stamp that this very request has read is the same.
 * - A **writer** stores events, then reads `sealingUntil`, then marks hours below it as stale, then renews `any` of the accounts,
 *   and `sealed` of those with such hours. Before its first, the stamps of all. Only then are its events acknowledged.
 *
 * Why a kept answer holds every event that was acknowledged before it was asked for. Take such an event and such a request.
 *
 * - The writer has renewed the stamp that the answer was kept with. The request has read the stamp after that, so it is one that was
 *   made after the renewal. The answer was computed after this stamp was read, so after the event was stored and its hour marked,
 *   and such an answer has it (see marks.ts in packages/warehouse).
 * - The writer has not. Then the stamp is `sealed`, and the writer had read a `sealingUntil` not above the event's hour. So the
 *   event was stored before a sealer could publish one above it, which that sealer did before it took its snapshot, and before it
 *   published the `sealedUntil` that the answer was computed with: the event is in the cells.
 *
 * The second case needs watermarks that only rise. They fall when an operator seals again from the start, or restores an older
 * backup, which is done while no worker runs. So the event's writer has begun after it, and has renewed the stamps of all before
 * its first acknowledgement. The request has read a stamp that was made after that, and so had the request that the answer was
 * computed for; it was computed with watermarks of after the fall, since which they have only risen.
 *
 * Losing a stamp costs a computation, because a text that is gone never comes back. It must not come back with an older state of
 * Redis either, after a restart or on a replica that takes over. A process notices both: its connection is closed, or the
 * server does not know the script, which has a text of its own in each process and each era: a server that was left and takes over
 * once more does not know it either. Each begins an era, and stamps of two eras differ. The renewal that a server has lost was
 * made before the server took over, and so before the era and every answer of it.
 * Reading is also a write: a server that was cut off from its replicas refuses it, if `min-replicas-to-write` says so.
 * Source of the protocol, and what it does not cover: docs/decisions/0038.
 */
import { randomUUID } from 'node:crypto';
import { z } from 'zod';
import { prefixIn, type RedisClient } from './redis.js';
import { runScript, type Script, scriptOf } from './script.js';

export interface Stamps {
  /** Stays as long as nothing has changed in hours that are sealed, or being sealed. */
  readonly sealed: string;
  /** Stays as long as nothing at all has changed. */
  readonly any: string;
}

/** Those of accounts that nobody asks about are forgotten. */
const KEPT_MS = 3_600_000;
/** Of one command, so that Redis is never busy for long. */
const RENEWED_AT_ONCE = 1_000;

/** KEYS: the stamps; ARGV: a new one, and how long they are kept, in milliseconds. */
const READ = `
local stamps = {}
for i, key in ipairs(KEYS) do
  stamps[i] = redis.call('GET', key)
  if not stamps[i] then
    stamps[i] = ARGV[1]
    redis.call('SET', key, ARGV[1])
  end
  redis.call('PEXPIRE', key, ARGV[2])
end
return stamps`;

const stampTexts = z.tuple([z.string(), z.string(), z.string()]);

export class AnswerStamps {
  readonly #redis: RedisClient;
  readonly #prefix: string;
  /** Only this process has sent this script, and only in this era. */
  #script = newScript();
  #era = 0;
  #isWatching = false;

  constructor(redis: RedisClient, prefix: string) {
    this.#redis = redis;
    this.#prefix = prefixIn(redis, prefix);
  }

  /** The account's stamps of this moment; undefined if Redis does not say: then nothing that is kept may answer. Never rejects. */
  async read(account: string): Promise<Stamps | undefined> {
    this.#watch();
    try {
      const keys = [this.#all, this.#sealed(account), this.#any(account)];
      const [all, sealed, any] = stampTexts.parse(await this.#run(keys, [randomUUID(), KEPT_MS]));
      // Of the era in which the reply has come: nothing was computed since.
      const begun = `${this.#era}:${all}`;
      return { sealed: `${begun}:${sealed}`, any: `${begun}:${any}` };
    } catch {
      return undefined;
    }
  }

  /**
   * To be called when the accounts' events and marks are durable, before that is acknowledged. Works when Redis is full.
   * @param changed accounts whose events have changed in any hours
   * @param sealed those of them whose events have changed in hours that are sealed, or being sealed
   */
  async renew(changed: readonly string[], sealed: readonly string[]): Promise<void> {
    const keys = [...changed.map((account) => this.#any(account)), ...sealed.map((account) => this.#sealed(account))];
    for (let from = 0; from < keys.length; from += RENEWED_AT_ONCE) {
      await this.#redis.del(...keys.slice(from, from + RENEWED_AT_ONCE));
    }
  }

  /** The stamps of every account: for a writer before its first acknowledgement. Works when Redis is full. */
  async renewAll(): Promise<void> {
    await this.#redis.del(this.#all);
  }

  #run(keys: readonly string[], args: readonly (string | number)[]): Promise<unknown> {
    const sent = this.#script;
    return runScript(this.#redis, sent, keys, args, () => {
      // Of several requests that the new server did not know the script of, the first has begun the era.
      if (this.#script === sent) this.#beginEra();
      return this.#script;
    });
  }

  /** From the first reading on: a writer has no eras, and leaves nothing behind on a connection that is not its own. */
  #watch(): void {
    if (this.#isWatching) return;
    this.#isWatching = true;
    // Of a Redis Cluster also when one of its nodes comes or goes: another may have the stamps then.
    for (const change of ['close', '-node', '+node']) {
      this.#redis.on(change, () => this.#beginEra());
    }
  }

  /** With a script that no server knows, not even one that has been asked in an era before. */
  #beginEra(): void {
    this.#era += 1;
    this.#script = newScript();
  }

  /** Part of the stamps of every account. */
  get #all(): string {
    return `${this.#prefix}:stamps:all`;
  }

  #sealed(account: string): string {
    return `${this.#prefix}:stamps:sealed:${account}`;
  }

  #any(account: string): string {
    return `${this.#prefix}:stamps:any:${account}`;
  }
}

function newScript(): Script {
  return scriptOf(`-- ${randomUUID()}${READ}`);
}
