/** Sends events to Meterline's collector over HTTP, with Node's own client: one request for each account in a batch. */
import { promisify } from 'node:util';
import { gzip } from 'node:zlib';
import { NO_ACCOUNT_PATH, parseJson } from '@meterline/catalog/events';
import { EmitterError, NotTaken, wordsOf } from './errors.js';
import type { ApiKey, Refusal, Transport } from './transport.js';

/** Of an attempt, from the connection to the end of the answer. */
const ANSWER_WITHIN_MS = 10_000;
/** When the collector does not say when to come again. */
const HELD_MS = 5_000;
const LONGEST_WAIT_MS = 600_000;
/** The catalog's code for an event that comes too early. */
const EARLY = 'timestamp_in_future';
/** More than a clock is ahead that takes the time of its zone for UTC. An event that is further ahead is refused for good. */
const LONGEST_EARLY_MS = 86_400_000;
/** From here on a body is compressed: 500 events to a fifth, in less than a millisecond of another thread. */
const COMPRESSED_FROM_BYTES = 4_096;
const FASTEST = { level: 1 };
const MOST_OF_A_MESSAGE = 300;
/** What a header can carry. The client would repeat any other key in its error message. */
const KEY = /^[!-~]+$/;

const compressed = promisify(gzip);

/** @throws EmitterError `invalid_option` */
export function openHttpTransport(url: string, apiKey: ApiKey | undefined): Transport {
  const { username, password, search, hash } = new URL(url);
  if (username + password + search + hash !== '') {
    throw new EmitterError('invalid_option', 'url must end with its path, and have no password: use apiKey');
  }
  if (typeof apiKey !== 'function' && !KEY.test(apiKey ?? '')) {
    throw new EmitterError('invalid_option', 'a collector needs apiKey, a key of role emitter');
  }
  const base = url.replace(/\/+$/, '').replace(/\/v0$/, '');
  const attempts = new Set<AbortController>();

  /** @throws NotTaken */
  async function keyOf(account: string, signal: AbortSignal): Promise<string> {
    let key = apiKey;
    try {
      if (typeof key === 'function') key = await Promise.race([key(account), end(signal)]);
    } catch (cause) {
      throw new NotTaken(`apiKey has failed: ${wordsOf(cause)}`, HELD_MS);
    }
    if (typeof key === 'string' && KEY.test(key)) return key;
    throw new NotTaken('apiKey gives no key', HELD_MS);
  }

  async function post(account: string, json: string) {
    const isLarge = json.length >= COMPRESSED_FROM_BYTES;
    const attempt = new AbortController();
    const late = () => attempt.abort(new Error(`no answer within ${ANSWER_WITHIN_MS / 1_000} s`));
    const timer = setTimeout(late, ANSWER_WITHIN_MS);
    attempts.add(attempt);
    try {
      const response = await fetch(`${base}/v0/accounts/${encodeURIComponent(account)}/events`, {
        method: 'POST',
        headers: {
          authorization: `Bearer ${await keyOf(account, attempt.signal)}`,
          'content-type': 'application/json',
          ...(isLarge && { 'content-encoding': 'gzip' }),
        },
        body: isLarge ? await compressed(json, FASTEST) : json,
        // Followed, a redirect may lose the body, and with it the events.
        redirect: 'manual',
        signal: attempt.signal,
      });
      return { response, text: await response.text() };
    } catch (error) {
      // "fetch failed" says less than its cause.
      throw Object(error).cause ?? error;
    } finally {
      clearTimeout(timer);
      attempts.delete(attempt);
    }
  }

  return {
    /** The account; empty for a text that is no event, which only a spool that was edited can hold. */
    laneOf: (text) => {
      const { accountId } = membersOf(text);
      return typeof accountId === 'string' ? accountId : '';
    },
    send: async (texts, account) => {
      if (NO_ACCOUNT_PATH.test(account)) {
        const message = `no HTTP address has the account "${account}"; send its events to the queue`;
        return texts.map((_, index) => ({ index, reason: 'invalid_account_id', message }));
      }
      const { response, text } = await post(account, `[${texts.join()}]`);
      const { status, headers } = response;
      const refusals = status === 202 || status === 400 ? refusalsIn(text, texts) : undefined;
      const early = refusals?.find(({ index, reason }) => reason === EARLY && isSoon(texts[index]));
      if (refusals && !early) return refusals;
      const { message } = early ?? membersOf(text);
      const words = typeof message === 'string' ? message : `is url the collector's? It says: ${text}`;
      const isAway = status === 408 || (status >= 502 && status <= 504);
      const pauseMs = waitOf(headers.get('retry-after')) ?? (isAway ? 0 : HELD_MS);
      throw new NotTaken(`${status}, ${words.slice(0, MOST_OF_A_MESSAGE)}`, pauseMs, isAway);
    },
    close: () => {
      for (const attempt of attempts) attempt.abort();
    },
  };
}

/** Rejects when the attempt is over. */
function end(signal: AbortSignal): Promise<never> {
  return new Promise((_, reject) => signal.addEventListener('abort', () => reject(signal.reason)));
}

/** Undefined for an answer that does not account for each event: nothing is known then. */
function refusalsIn(text: string, sent: readonly string[]): Refusal[] | undefined {
  const { accepted, results } = membersOf(text);
  if (!Array.isArray(results)) return undefined;
  const refusals = new Map<number, Refusal>();
  for (const { status, index, reason, message } of results) {
    if (status === 'refused' && sent[index] !== undefined) refusals.set(index, { index, reason, message });
  }
  return accepted === sent.length - refusals.size ? [...refusals.values()] : undefined;
}

/** Whether the event's time comes before long, by the clock here: it may have been set meanwhile. */
function isSoon(text?: string): boolean {
  return Date.parse(String(membersOf(text)['timestamp'])) - Date.now() < LONGEST_EARLY_MS;
}

/** Milliseconds from now: seconds, or a date. Source: RFC 9110 §10.2.3. */
function waitOf(retryAfter: string | null): number | undefined {
  const seconds = Number(retryAfter ?? Number.NaN);
  const ms = Number.isNaN(seconds) ? Date.parse(retryAfter ?? '') - Date.now() : seconds * 1_000;
  return ms >= 0 ? Math.min(ms, LONGEST_WAIT_MS) : undefined;
}

/** Of the object that a text of JSON is; none for any other text. */
function membersOf(text = ''): Readonly<Record<string, unknown>> {
  return { ...Object(parseJson(text)) };
}
