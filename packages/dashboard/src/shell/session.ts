/** Manages the session of this tab: its API key or token, the client that uses the key or token, and the cached responses. */
import type { EpochMs } from '@meterline/catalog/plain';
import { MeterlineClient, MeterlineError } from '@meterline/client';
import { MutationCache, QueryCache, QueryClient } from '@tanstack/react-query';
import { createContext, useContext } from 'react';
import * as z from 'zod/mini';
import { currentSecond } from '../period/period.js';
import { retryDelay, shouldRetry, shouldRetryExport } from '../states/problem.js';
import { serviceAddress } from './service.js';
import { tabStorage } from './storage.js';

export interface Session {
  readonly client: MeterlineClient;
  /** Each session has its own cache, so that a user does not see responses of a previous session. */
  readonly queries: QueryClient;
  /** The time to which the data of the first screen refers. */
  readonly openedAt: EpochMs;
  readonly signOut: () => void;
  readonly lifetime: AbortController;
  /** Maximum age of a cached response. A click on Refresh sets 0, and an automatic refresh sets {@link CACHE_SECONDS}. */
  maxAgeSeconds: number;
}

/** Maximum age of a cached response in an automatic refresh. Several tabs then share the responses in the service's cache. */
export const CACHE_SECONDS = 15;

export const SessionContext = createContext<Session | undefined>(undefined);

export function useSession(): Session {
  const session = useContext(SessionContext);
  if (!session) throw new Error('useSession was called outside SessionContext (bug)');
  return session;
}

/** Creates a client without retries, because the page itself retries and shows a countdown. */
export function createClient(credential: string): MeterlineClient {
  return new MeterlineClient({ baseUrl: serviceAddress(), credential, retries: 0 });
}

interface SessionCallbacks {
  readonly end: (reason?: string) => void;
  readonly signOut?: () => void;
}

export function createSession(client: MeterlineClient, { end, signOut = end }: SessionCallbacks): Session {
  const lifetime = new AbortController();
  const onError = (error: Error) => {
    // A request may fail after its session has ended. Ignore this error, because it must not end the next session.
    if (!lifetime.signal.aborted && error instanceof MeterlineError && error.status === 401) end(error.message);
  };
  const queries = new QueryClient({
    queryCache: new QueryCache({ onError }),
    mutationCache: new MutationCache({ onError }),
    defaultOptions: {
      queries: {
        staleTime: Number.POSITIVE_INFINITY,
        refetchOnWindowFocus: false,
        retry: (_failures, error) => shouldRetry(error),
        retryDelay,
      },
      mutations: { retry: shouldRetryExport, retryDelay },
    },
  });
  return { client, queries, openedAt: currentSecond(), signOut, lifetime, maxAgeSeconds: CACHE_SECONDS };
}

const STORAGE_KEY = 'meterline.credential';

export function storedCredential(): string | undefined {
  return tabStorage.getItem(STORAGE_KEY) || undefined;
}

export function storeCredential(credential: string): void {
  tabStorage.setItem(STORAGE_KEY, credential);
}

export function removeCredential(): void {
  tabStorage.removeItem(STORAGE_KEY);
}

/*
 * A new tab requests the key or token from the other tabs, so that a link opens without another sign-in. The browser delivers these
 * messages only to tabs of the same origin, and does not store them. docs/decisions/0008 explains why the tabs do not use shared storage.
 */

/** Opens the channel between tabs. Returns undefined if the browser has no BroadcastChannel, or blocks it together with site data. */
function openChannel(): BroadcastChannel | undefined {
  try {
    return new BroadcastChannel('meterline.session');
  } catch {
    return undefined;
  }
}

/** Long enough for a background tab to respond, and short enough that users do not notice the delay before the sign-in form. */
const TIMEOUT_MS = 250;

const messageSchema = z.object({
  /** A new tab sends `request`, and other tabs send `response`. `sign-out` ends the session in every tab that shares the credential. */
  type: z.enum(['request', 'response', 'sign-out']),
  /** Only a tab that shows this account may respond. Undefined means any account. The response repeats the account. */
  account: z.optional(z.string()),
  /** The credential. Set in `response` and `sign-out`. */
  credential: z.optional(z.string()),
});
type Message = z.output<typeof messageSchema>;

/** Requests the credential of another tab that shows the account. Resolves to undefined if no tab responds. */
export function requestCredential(account: string | undefined): Promise<string | undefined> {
  const channel = openChannel();
  if (!channel) return Promise.resolve(undefined);
  return new Promise((resolve) => {
    const finish = (credential: string | undefined) => {
      clearTimeout(timer);
      channel.close();
      resolve(credential);
    };
    const timer = setTimeout(() => finish(undefined), TIMEOUT_MS);
    channel.addEventListener('message', ({ data }) => {
      const message = messageSchema.safeParse(data);
      const isForThisTab = message.success && message.data.type === 'response' && message.data.account === account;
      if (isForThisTab) finish(message.data.credential);
    });
    channel.postMessage({ type: 'request', account } satisfies Message);
  });
}

interface SharedCredential {
  readonly credential: string;
  readonly account: () => string | undefined;
  readonly onSignOut: () => void;
}

/** Responds to requests of other tabs until the returned function is called. */
export function shareCredential({ credential, account, onSignOut }: SharedCredential): () => void {
  const channel = openChannel();
  channel?.addEventListener('message', ({ data }) => {
    const message = messageSchema.safeParse(data);
    if (!message.success) return;
    const { type } = message.data;
    if (type === 'request' && (message.data.account === undefined || message.data.account === account())) {
      channel.postMessage({ type: 'response', account: message.data.account, credential } satisfies Message);
    }
    if (type === 'sign-out' && message.data.credential === credential) onSignOut();
  });
  return () => channel?.close();
}

export function announceSignOut(credential: string): void {
  const channel = openChannel();
  channel?.postMessage({ type: 'sign-out', credential } satisfies Message);
  channel?.close();
}
