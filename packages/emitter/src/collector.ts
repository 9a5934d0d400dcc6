/** Sends events to Meterline's collector over HTTP, with Node's own client: one request for each account in a batch. */
import { promisify } from 'node:util';
import { gzip } from 'node:zlib';
import {
  abortable,
  isAwayStatus,
  NO_ACCOUNT_PATH,
  parseJson,
  parseRetryAfter,
  type RejectedEvent,
  rejectedIn,
  serviceAddress,
} from '@meterline/catalog/plain';
import { EmitterError, errorMessage } from './problems.js';

/** For an attempt, from the connection to the end of the response. */
const TIMEOUT_MS = 10_000;
/** When the collector does not take the events of an account, nor says when to come again. */
const HELD_MS = 5_000;
const LONGEST_RETRY_AFTER_MS = 600_000;
/** The catalog's code for an event that comes too early. */
const EARLY = 'timestamp_in_future';
/** More than a clock is ahead that takes the time of its zone for UTC. An event that is further ahead is rejected for good. */
const LONGEST_EARLY_MS = 86_400_000;
/** From here on a body is compressed: 500 events to a fifth, in less than a millisecond of another thread. */
const COMPRESSED_FROM_BYTES = 4_096;
const FASTEST = { level: 1 };
const LONGEST_MESSAGE = 300;
/** What a header can carry. The client would repeat any other key in its error message. */
const KEY = /^[!-~]+$/;

/** A key, or what gives that of an account; it is asked before every attempt, so that keys can be renewed. */
export type ApiKey = string | ((accountId: string) => string | Promise<string>);

/** Somebody has answered, and has not taken the events; they are kept. */
export class NotTaken extends Error {
  /**
   * @param pauseMs the events are not sent again before so many milliseconds
   * @param whose events are not taken at the moment
   * @param isTrouble whether the program should know. That a busy collector asks for a short pause is nothing to report
   */
  constructor(
    message: string,
    readonly pauseMs = HELD_MS,
    readonly whose: 'everybody' | 'account' | 'batch' = 'account',
    readonly isTrouble = true,
  ) {
    super(message);
  }
}

export interface Collector {
  /**
   * Resolves when the events are accepted, but for those that are rejected for good: from then on Meterline is responsible for them.
   * Rejects when they are not, or when that is not known; they are sent again then, which is harmless.
   * @param texts events as JSON, 1 to 5,000, of one account
   * @throws NotTaken when somebody answers and says no, another error when nobody does
   */
  send(texts: readonly string[], account: string): Promise<readonly RejectedEvent[]>;

  /** Closes connections at once. What is being sent rejects. */
  close(): void;
}

/** @throws EmitterError `invalid_option`, whose message does not repeat the address or the key, because either may hold a secret */
export function openCollector(
  url: string,
  apiKey: ApiKey,
  send: typeof fetch = (input, init) => fetch(input, init),
): Collector {
  const base = serviceAddress(url, (problem) => new EmitterError('invalid_option', `the collector's url ${problem}`));
  if (typeof apiKey !== 'function' && !KEY.test(apiKey ?? '')) {
    throw new EmitterError('invalid_option', 'a collector needs apiKey, a key of role emitter');
  }
  const attempts = new Set<AbortController>();

  /** @throws NotTaken */
  async function keyOf(account: string, signal: AbortSignal): Promise<string> {
    let key: unknown = apiKey;
    try {
      if (typeof apiKey === 'function') key = await abortable(Promise.resolve(apiKey(account)), signal);
    } catch (cause) {
      throw new NotTaken(`apiKey has failed: ${errorMessage(cause)}`);
    }
    if (typeof key === 'string' && KEY.test(key)) return key;
    throw new NotTaken('apiKey gives no key');
  }

  async function post(account: string, json: string) {
    const isLarge = json.length >= COMPRESSED_FROM_BYTES;
    const attempt = new AbortController();
    const timer = setTimeout(() => attempt.abort(new Error(`no response within ${TIMEOUT_MS / 1_000} s`)), TIMEOUT_MS);
    attempts.add(attempt);
    try {
      const response = await send(`${base}/v0/events`, {
        method: 'POST',
        headers: {
          authorization: `Bearer ${await keyOf(account, attempt.signal)}`,
          'content-type': 'application/json',
          ...(isLarge && { 'content-encoding': 'gzip' }),
        },
        body: isLarge ? await promisify(gzip)(json, FASTEST) : json,
        // Followed, a redirect may lose the body, and with it the events.
        redirect: 'manual',
        signal: attempt.signal,
      });
      return { response, text: await abortable(response.text(), attempt.signal) };
    } catch (error) {
      // "fetch failed" says less than its cause.
      throw Object(error).cause ?? error;
    } finally {
      clearTimeout(timer);
      attempts.delete(attempt);
    }
  }

  return {
    send: async (texts, account) => {
      if (NO_ACCOUNT_PATH.test(account)) {
        const message = `no HTTP address has the account "${account}"; its events can only be added to the queue, with BullMQ`;
        return texts.map((_, index) => ({ index, reason: 'invalid_account_id', message }));
      }
      const { response, text } = await post(account, `[${texts.join()}]`);
      const { status, headers } = response;
      const rejectedEvents = status === 202 || status === 400 ? rejectedIn(parseJson(text), texts.length) : undefined;
      const early = rejectedEvents?.find(
        ({ index, reason }) => reason === EARLY && aheadMs(texts[index]) < LONGEST_EARLY_MS,
      );
      if (rejectedEvents && !early) return rejectedEvents;
      const result = early ?? membersOf(text);
      const said = saidIn(result) || `is url the collector's? It says: ${text}`;
      // A defect (500) may concern the events of one account: those of others are sent.
      const isAway = isAwayStatus(status) && status !== 500;
      const pauseMs = retryAfterMs(headers) ?? (isAway ? 0 : HELD_MS);
      const isTrouble = isAway || pauseMs >= HELD_MS;
      // If this clock was set back since, only these events are early; while it is ahead, all are.
      const isOfBatch = status === 413 || (early !== undefined && aheadMs(texts[early.index]) > 0);
      const whose = isAway ? 'everybody' : isOfBatch ? 'batch' : 'account';
      throw new NotTaken(`${status}, ${said.slice(0, LONGEST_MESSAGE)}`, pauseMs, whose, isTrouble);
    },
    close: () => {
      for (const attempt of attempts) attempt.abort();
    },
  };
}

/** @returns the account of an event; empty for a text that is no event, which only a spool that was edited can hold */
export function accountOf(text: string): string {
  const { accountId } = membersOf(text);
  return typeof accountId === 'string' ? accountId : '';
}

/** What a response says, and why: an error has details with a message each. */
function saidIn({ message, details }: { readonly message?: unknown; readonly details?: unknown }): string {
  const reasons = Array.isArray(details) ? details.map((detail) => Object(detail).message) : [];
  return [message, ...reasons].filter((each) => typeof each === 'string').join(' ');
}

/** How long the event's time is ahead of the clock here, which may have been set meanwhile. */
function aheadMs(text?: string): number {
  return Date.parse(String(membersOf(text)['timestamp'])) - Date.now();
}

/** Milliseconds from now. */
function retryAfterMs(headers: Headers): number | undefined {
  const requested = parseRetryAfter(headers.get('retry-after'), new Date());
  return requested && Math.min(requested, LONGEST_RETRY_AFTER_MS);
}

/** The members of the object that a text of JSON is; none for any other text. */
function membersOf(text = ''): Readonly<Record<string, unknown>> {
  return { ...Object(parseJson(text)) };
}
