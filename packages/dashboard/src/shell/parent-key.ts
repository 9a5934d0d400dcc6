/** Keeps the key of an embedded page. Requests a new key from the parent page when the API rejects the current key. */
import type { Fetch } from '@meterline/client';
import * as z from 'zod/mini';
import { readPageSettings } from './service.js';

/** Time for the parent's backend to create a key. The page shows its last data meanwhile. */
const TIMEOUT_MS = 10_000;

const keyMessage = z.object({ type: z.literal('meterline:key'), key: z.string() });

/**
 * If the API rejects the key, or if there is no key, the page posts `{ type: 'meterline:key-expired' }` to its parent. The parent responds
 * with `{ type: 'meterline:key', key }`. The parent may also post a new key at any time.
 */
export class ParentKey {
  #key: string;
  #renewal: Promise<string> | undefined;
  #onReceived: (key: string) => void = () => undefined;

  /** @param key empty if there is no key yet. The API then rejects the first request, and the page requests a key. */
  constructor(key = '') {
    this.#key = key;
  }

  /** Returns the last key received, even if the API has rejected it. */
  readonly current = () => this.#key;

  /** Works like `fetch`. If the API rejects the key and the parent then posts another key, sends the request once more. */
  readonly fetch: Fetch = async (url, init) => {
    const response = await fetch(url, init);
    if (response.status !== 401) return response;
    const headers = new Headers(init.headers);
    const rejected = (headers.get('Authorization') ?? '').replace(/^Bearer */, '');
    const key = await this.#renewed(rejected);
    if (key === rejected) return response;
    headers.set('Authorization', `Bearer ${key}`);
    return fetch(url, { ...init, headers });
  };

  /** Accepts keys from the parent until the returned function is called. @param onReceived called after each key */
  listen(onReceived: () => void): () => void {
    const receive = async ({ data, origin, source }: MessageEvent) => {
      const message = keyMessage.safeParse(data);
      if (!message.success || source !== window.parent || window.parent === window) return;
      const { frameAncestors } = await readPageSettings();
      if (!frameAncestors.includes(origin)) return;
      this.#key = message.data.key;
      this.#onReceived(this.#key);
      onReceived();
    };
    window.addEventListener('message', receive);
    return () => window.removeEventListener('message', receive);
  }

  /** Returns a key other than the rejected key. If the parent posts no other key before the timeout, returns the rejected key. */
  #renewed(rejected: string): string | Promise<string> {
    if (this.#key !== rejected || window.parent === window) return this.#key;
    this.#renewal ??= new Promise<string>((resolve) => {
      this.#onReceived = resolve;
      setTimeout(() => resolve(this.#key), TIMEOUT_MS);
      // Any origin may read this message, because it contains no secret, and the browser enforces which pages may embed this page.
      window.parent.postMessage({ type: 'meterline:key-expired' }, '*');
    }).finally(() => {
      this.#renewal = undefined;
    });
    return this.#renewal;
  }
}
