/** When API keys were last used: at most one write for a key in an hour, which no request waits for. */
import type { ApiKeyStore } from '@meterline/access';
import { MS_PER_HOUR } from '@meterline/catalog';
import { LRUCache } from 'lru-cache';

const MAX_KEYS = 100_000;
const RETRY_MS = 60_000;

export class LastUses {
  readonly #keys: Pick<ApiKeyStore, 'noteUse'>;
  /** Until when nothing is to be written of a key, in epoch milliseconds. */
  readonly #quietUntil = new LRUCache<string, number>({ max: MAX_KEYS });

  constructor(keys: Pick<ApiKeyStore, 'noteUse'>) {
    this.#keys = keys;
  }

  note(keyId: string, now: Date): void {
    const at = now.getTime();
    if (at < (this.#quietUntil.get(keyId) ?? 0)) return;
    const hour = Math.floor(at / MS_PER_HOUR) * MS_PER_HOUR;
    this.#quietUntil.set(keyId, hour + MS_PER_HOUR);
    // A Redis that is full or away refuses it. No answer depends on it, and another request tries again.
    this.#keys.noteUse(keyId, new Date(hour)).catch(() => this.#quietUntil.set(keyId, at + RETRY_MS));
  }
}
