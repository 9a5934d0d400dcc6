/**
 * The key of an embedded page, in memory only. When the API refuses it, or when there is none, the page posts
 * `{ type: 'meterline:key-expired' }` to its parent, which answers `{ type: 'meterline:key', key }`; it may also give another key at any time.
 */
import type { Fetch } from '@meterline/client';
import * as z from 'zod/mini';
import { readPageSettings } from '../metrics/page-settings.js';

/** The parent's backend makes a key meanwhile; the person sees the last figures. */
const PATIENCE_MS = 10_000;

const keyMessage = z.object({ type: z.literal('meterline:key'), key: z.string() });

export class ParentKey {
  #key: string;
  #renewal: Promise<string> | undefined;
  #onGiven: (key: string) => void = () => undefined;

  /** @param key empty: there is none yet, so that the first request is refused */
  constructor(key = '') {
    this.#key = key;
  }

  /** The last one that was given, even if it was refused. */
  readonly current = () => this.#key;

  /** As `fetch`, but a request whose key is refused is sent once more, with the next key. */
  readonly fetch: Fetch = async (url, init) => {
    const answer = await fetch(url, init);
    if (answer.status !== 401) return answer;
    const headers = new Headers(init.headers);
    const refused = (headers.get('Authorization') ?? '').replace(/^Bearer */, '');
    const key = await this.#renewed(refused);
    if (key === refused) return answer;
    headers.set('Authorization', `Bearer ${key}`);
    return fetch(url, { ...init, headers });
  };

  /** Takes keys from the parent until the returned function is called. @param onGiven called after each */
  listen(onGiven: () => void): () => void {
    const receive = async ({ data, origin, source }: MessageEvent) => {
      const message = keyMessage.safeParse(data);
      if (!message.success || source !== window.parent || window.parent === window) return;
      const { frameAncestors } = await readPageSettings();
      if (!frameAncestors.includes(origin)) return;
      this.#key = message.data.key;
      this.#onGiven(this.#key);
      onGiven();
    };
    window.addEventListener('message', receive);
    return () => window.removeEventListener('message', receive);
  }

  /** One that is not the refused one; the same when the parent gives none in time. */
  #renewed(refused: string): string | Promise<string> {
    if (this.#key !== refused || window.parent === window) return this.#key;
    this.#renewal ??= new Promise<string>((resolve) => {
      this.#onGiven = resolve;
      setTimeout(() => resolve(this.#key), PATIENCE_MS);
      // It holds no secret; who may be the parent is checked by the browser.
      window.parent.postMessage({ type: 'meterline:key-expired' }, '*');
    }).finally(() => {
      this.#renewal = undefined;
    });
    return this.#renewal;
  }
}
