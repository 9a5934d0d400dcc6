/** What the client and its calls are given. */
import type { AlertChange, ApiVersion, Instant, KeyRole, NewAlert } from '@meterline/catalog';

/** What the client asks of `fetch`. Another way to send its requests need know no more. */
export type Fetch = (url: string, init: RequestInit) => Promise<FetchedAnswer>;

/** The part of `Response` that the client reads. */
export type FetchedAnswer = Pick<Response, 'ok' | 'status' | 'headers' | 'text'>;

/** An answer, read to its end. */
export interface RawAnswer {
  readonly response: FetchedAnswer;
  readonly text: string;
}

interface CommonOptions {
  /** Where the API is, with or without `/v0`: `https://billing.example.com`. */
  readonly baseUrl: string;
  /** Default: the newest that this client knows. */
  readonly apiVersion?: ApiVersion | undefined;
  /** Default: the platform's. */
  readonly fetch?: Fetch | undefined;
  /** Attempts after the first, when the API is busy or cannot be reached; default 3. */
  readonly retries?: number | undefined;
  /** Milliseconds for one attempt, default 60,000. */
  readonly timeout?: number | undefined;
}

/** An API key or access token, or a function that returns one: called before every attempt, so that it can be renewed. */
export type MeterlineClientOptions = CommonOptions &
  (
    | { readonly credential: string; readonly getCredential?: never }
    | { readonly credential?: never; readonly getCredential: () => string | Promise<string> }
  );

export interface RequestOptions {
  /** Aborting it ends the call at once, waits between attempts included; the call fails with the signal's reason. */
  readonly signal?: AbortSignal | undefined;
  /**
   * How old the first page of metrics may be, up to 300 s, such as 15 for a panel that refreshes: the API may then answer from memory.
   * Default: it is computed, with every event that was stored before. Other requests are always computed.
   */
  readonly maxAgeSeconds?: number | undefined;
}

export interface PagesOptions extends RequestOptions {
  /** Forgets the pages that came, because they come again: events have changed the result while it was read. */
  readonly onRestart?: (() => void | Promise<void>) | undefined;
}

/** A new key of a service account. */
export interface NewApiKey {
  readonly role: KeyRole;
  /** One that the caller is an admin of; needed only by those who are an admin of several. */
  readonly account?: string | undefined;
  /** In the future; default: never. */
  readonly expiresAt?: Instant | undefined;
}

/** A parameter, which may be constant. */
type Constant<Type> = Type extends object ? { readonly [Name in keyof Type]: Constant<Type[Name]> } : Type;

/** A new alert. Its amount is a decimal as text: USD, or usage in the unit of its billing dimension. */
export type NewAlertBody = Constant<NewAlert>;
/** Members that are left out stay as they are. */
export type AlertChangeBody = Constant<AlertChange>;
