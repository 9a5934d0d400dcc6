/** Who is signed in: the tab's key or token, the client that uses it, and the cache of its responses. */
import type { EpochMs } from '@meterline/catalog/plain';
import { MeterlineClient, MeterlineError } from '@meterline/client';
import { MutationCache, QueryCache, QueryClient } from '@tanstack/react-query';
import { createContext, useContext } from 'react';
import * as z from 'zod/mini';
import { currentSecond } from '../period/period.js';
import { retryDelay, shouldRetry, shouldRetryExport } from '../states/problem.js';
import { serviceAddress } from './service-address.js';
import { tabStorage } from './storage.js';

export interface Session {
  readonly client: MeterlineClient;
  /** A cache of this session alone: nobody sees the responses of the session before. */
  readonly queries: QueryClient;
  /** What the first screen is as of. */
  readonly openedAt: EpochMs;
  readonly signOut: () => void;
  /** Aborted when the session is not shown any more. */
  readonly over: AbortController;
  /** Seconds that a response may be old: 0 once the person has asked for a refresh, until the page refreshes by itself. */
  maxAgeSeconds: number;
}

/** Seconds that a response may be old when nobody asked for a refresh: tabs that refresh by themselves share responses. */
export const SHARED_SECONDS = 15;

export const SessionContext = createContext<Session | undefined>(undefined);

export function useSession(): Session {
  const session = useContext(SessionContext);
  if (!session) throw new Error('there is no session outside SessionContext');
  return session;
}

/** Without retries: the page retries by itself, and shows that it does. */
export function createClient(credential: string): MeterlineClient {
  return new MeterlineClient({ baseUrl: serviceAddress(), credential, retries: 0 });
}

interface Ends {
  /** The API does not accept the key or token any more. */
  readonly end: (reason?: string) => void;
  readonly signOut?: () => void;
}

export function createSession(client: MeterlineClient, { end, signOut = end }: Ends): Session {
  const over = new AbortController();
  const onError = (error: Error) => {
    // What it had asked for may fail after its end, when another one has begun.
    if (!over.signal.aborted && error instanceof MeterlineError && error.status === 401) end(error.message);
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
  return {
    client,
    queries,
    openedAt: currentSecond(),
    signOut,
    over,
    maxAgeSeconds: SHARED_SECONDS,
  };
}

const STORAGE_KEY = 'meterline.credential';

export function keptCredential(): string | undefined {
  return tabStorage.getItem(STORAGE_KEY) || undefined;
}

export function keepCredential(credential: string): void {
  tabStorage.setItem(STORAGE_KEY, credential);
}

export function forgetCredential(): void {
  tabStorage.removeItem(STORAGE_KEY);
}

/*
 * A tab that was opened from a link asks the tabs that are signed in for their key or token, so that nobody signs in twice.
 * The browser delivers these messages to tabs of the same origin only, and stores none. Why not a storage that all tabs
 * share: docs/decisions/0008.
 */

/** Undefined where the browser has no channel, or blocks it together with site data. */
function openChannel(): BroadcastChannel | undefined {
  try {
    return new BroadcastChannel('meterline.session');
  } catch {
    return undefined;
  }
}

/** A tab in the background may take a moment to answer; a person who must sign in should not wait for it. */
const TIMEOUT_MS = 250;

const messageSchema = z.object({
  /** A tab has no credential; another one gives its own; one has signed out, which ends the session in all that share it. */
  type: z.enum(['wanted', 'given', 'ended']),
  /** The account in the link, which the answering tab must show, and says again; undefined: any. */
  account: z.optional(z.string()),
  /** Given or ended. */
  credential: z.optional(z.string()),
});
type Message = z.output<typeof messageSchema>;

/** The credential of a tab that shows the account; undefined when there is none. */
export function askOtherTabs(account: string | undefined): Promise<string | undefined> {
  const channel = openChannel();
  if (!channel) return Promise.resolve(undefined);
  return new Promise((resolve) => {
    const end = (credential: string | undefined) => {
      clearTimeout(timer);
      channel.close();
      resolve(credential);
    };
    const timer = setTimeout(() => end(undefined), TIMEOUT_MS);
    channel.addEventListener('message', ({ data }) => {
      const message = messageSchema.safeParse(data);
      const isForThis = message.success && message.data.type === 'given' && message.data.account === account;
      if (isForThis) end(message.data.credential);
    });
    channel.postMessage({ type: 'wanted', account } satisfies Message);
  });
}

interface Holder {
  readonly credential: string;
  /** The account that the tab shows. */
  readonly account: () => string | undefined;
  /** Called when another tab with the same credential has signed out. */
  readonly onEnded: () => void;
}

/** Answers other tabs until the returned function is called. */
export function replyToOtherTabs({ credential, account, onEnded }: Holder): () => void {
  const channel = openChannel();
  channel?.addEventListener('message', ({ data }) => {
    const message = messageSchema.safeParse(data);
    if (!message.success) return;
    const { type } = message.data;
    if (type === 'wanted' && (message.data.account === undefined || message.data.account === account())) {
      channel.postMessage({ type: 'given', account: message.data.account, credential } satisfies Message);
    }
    if (type === 'ended' && message.data.credential === credential) onEnded();
  });
  return () => channel?.close();
}

export function tellEnded(credential: string): void {
  const channel = openChannel();
  channel?.postMessage({ type: 'ended', credential } satisfies Message);
  channel?.close();
}
