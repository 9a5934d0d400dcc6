/** What an embedded page gets from its parent and from the service: its key, and who may embed it. */
import type { Fetch } from '@meterline/client';
import * as z from 'zod/mini';
import { givenKey } from './embed-address.js';
import { serviceAddress } from './service-address.js';

const pageSettings = z.object({ collectorUrl: z.optional(z.string()), frameAncestors: z.array(z.string()) });

/** What the page cannot know from its own address: see `pageSettingsRoute` of packages/api. @throws when the service does not answer */
export async function readPageSettings(signal?: AbortSignal): Promise<z.output<typeof pageSettings>> {
  const response = await fetch(`${serviceAddress()}/page-settings.json`, signal ? { signal } : {});
  return pageSettings.parse(await response.json());
}

/** The parent's backend makes a key meanwhile; the person sees the last figures. */
const TIMEOUT_MS = 10_000;

const keyMessage = z.object({ type: z.literal('meterline:key'), key: z.string() });

/**
 * The key of an embedded page. When the API refuses it, or when there is none, the page posts `{ type: 'meterline:key-expired' }` to its
 * parent, which answers `{ type: 'meterline:key', key }`; it may also give another key at any time.
 */
export class ParentKey {
  #key = givenKey ?? '';
  #renewal: Promise<string> | undefined;
  #onGiven: (key: string) => void = () => undefined;

  /** The last one that was given, even if it was refused; empty, so that the first request is refused: there is none yet. */
  readonly current = () => this.#key;

  /** As `fetch`, but a request whose key is refused is sent once more, with the next key. */
  readonly fetch: Fetch = async (url, init) => {
    const response = await fetch(url, init);
    if (response.status !== 401) return response;
    const headers = new Headers(init.headers);
    const refused = (headers.get('Authorization') ?? '').replace(/^Bearer */, '');
    const key = await this.#renewed(refused);
    if (key === refused) return response;
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

  /** A key that is not the refused one; the refused one when the parent gives none in time. */
  #renewed(refused: string): string | Promise<string> {
    if (this.#key !== refused || window.parent === window) return this.#key;
    this.#renewal ??= new Promise<string>((resolve) => {
      this.#onGiven = resolve;
      setTimeout(() => resolve(this.#key), TIMEOUT_MS);
      // The message holds no secret; who may be the parent is checked by the browser.
      window.parent.postMessage({ type: 'meterline:key-expired' }, '*');
    }).finally(() => {
      this.#renewal = undefined;
    });
    return this.#renewal;
  }
}
