/**
 * Which accounts have kept the engine busy lately. Their next statements run with less: one thread, and behind the threads
 * of others when the processor is short. An account that only loads its dashboard never gets there.
 */
import type { Scope } from '@meterline/warehouse';
import { LRUCache } from 'lru-cache';

/** Statement time of the last moments, in which an older second counts for less. */
interface Usage {
  readonly ms: number;
  readonly atMs: number;
}

const MAX_ACCOUNTS = 10_000;
/** After so long a statement counts for a third (e). */
const MEMORY_MS = 10_000;
/** A dashboard of ten questions uses half a second. */
const BUSY_FROM_MS = 2_000;

/** The niceness needs CAP_SYS_NICE in the server; without it the server ignores it, and one thread must do. */
export const BUSY_SETTINGS = { max_threads: 1, os_thread_priority: '10' } as const satisfies Scope['settings'];

export class BusyAccounts {
  readonly #usages = new LRUCache<string, Usage>({ max: MAX_ACCOUNTS });

  /** @param nowMs a clock that never goes back */
  isBusy(account: string, nowMs: number): boolean {
    return this.#usedMs(account, nowMs) > BUSY_FROM_MS;
  }

  /** A statement of the account took so long. */
  used(account: string, ms: number, nowMs: number): void {
    this.#usages.set(account, { ms: this.#usedMs(account, nowMs) + ms, atMs: nowMs });
  }

  #usedMs(account: string, nowMs: number): number {
    const usage = this.#usages.get(account);
    return usage ? usage.ms * Math.exp((usage.atMs - nowMs) / MEMORY_MS) : 0;
  }
}
