/** Sends events to the collector over HTTP. */
import { promisify } from 'node:util';
import { gzip } from 'node:zlib';
import {
  abortable,
  isAwayStatus,
  parseJson,
  parseRetryAfter,
  type RejectedEvent,
  rejectedIn,
  serviceAddress,
} from '@meterline/catalog/plain';
import { EmitterError } from './problems.js';

/** Timeout of an attempt in milliseconds, from connecting to the end of the response. */
const TIMEOUT_MS = 10_000;
/** Pause in milliseconds after a rejected request without Retry-After. */
const HELD_MS = 5_000;
const MAX_RETRY_AFTER_MS = 600_000;
const EARLY = 'timestamp_in_future';
/**
 * The collector rejects events from the future. An event that is ahead by less than this may come from a clock that shows local time
 * instead of UTC, so it is kept and retried. An event that is further ahead is rejected permanently.
 */
const MAX_EARLY_MS = 86_400_000;
/** HTTP statuses that one event may cause for the whole request: a proxy can reject its content, or the collector can fail on it. */
const ABOUT_CONTENT: readonly number[] = [400, 413, 500];
/** Larger bodies are compressed. 500 events shrink to a fifth, in less than a millisecond on another thread. */
const COMPRESSED_FROM_BYTES = 4_096;
const FASTEST = { level: 1 };
const MAX_MESSAGE_LENGTH = 300;
/** Characters that a header allows. If a key has other characters, the error message of `fetch` would contain the key. */
const KEY = /^[!-~]+$/;

/** A key, or a function that returns the key. The emitter calls the function before every attempt, so the function can renew the key. */
export type ApiKey = string | (() => string | Promise<string>);

/** Thrown if a server responds but does not accept the events. The emitter keeps the events and retries them. */
export class NotAcceptedError extends Error {
  readonly code: 'unreachable' | 'held';
  readonly pauseMs: number;
  /** Whether to report the problem to the program. A busy collector that requests a short pause is not reported. */
  readonly isTrouble: boolean;

  /** @param isOfBatch whether the error concerns only this batch. The collector may then accept other events. */
  constructor(
    status: number,
    message: string,
    readonly isOfBatch: boolean,
    retryAfterMs?: number,
  ) {
    super(`${status}, ${message.slice(0, MAX_MESSAGE_LENGTH)}`);
    const isAway = isAwayStatus(status) && !isOfBatch;
    this.code = isAway ? 'unreachable' : 'held';
    this.pauseMs = Math.min(retryAfterMs ?? (isAway ? 0 : HELD_MS), MAX_RETRY_AFTER_MS);
    this.isTrouble = isAway || this.pauseMs >= HELD_MS;
  }
}

export type Collector = ReturnType<typeof openCollector>;

/** @throws EmitterError `invalid_option`. Its message contains neither the URL nor the key, because both may contain a secret. */
export function openCollector(url: string, apiKey: ApiKey, send: typeof fetch = (input, init) => fetch(input, init)) {
  const base = serviceAddress(url, (problem) => new EmitterError('invalid_option', `the collector's url ${problem}`));
  const newKey = async () => (typeof apiKey === 'function' ? apiKey() : apiKey);
  if (typeof apiKey !== 'function' && !KEY.test(apiKey ?? '')) {
    throw new EmitterError('invalid_option', 'apiKey must be a key with the role emitter');
  }
  const attempts = new Set<AbortController>();

  async function post(json: string) {
    const isLarge = json.length >= COMPRESSED_FROM_BYTES;
    const attempt = new AbortController();
    const timer = setTimeout(() => attempt.abort(new Error(`no response within ${TIMEOUT_MS / 1_000} s`)), TIMEOUT_MS);
    attempts.add(attempt);
    try {
      const key = await abortable(newKey(), attempt.signal);
      if (!KEY.test(key ?? '')) throw new Error('the function apiKey must return a key');
      const response = await send(`${base}/v0/events`, {
        method: 'POST',
        headers: {
          authorization: `Bearer ${key}`,
          'content-type': 'application/json',
          ...(isLarge && { 'content-encoding': 'gzip' }),
        },
        body: isLarge ? await promisify(gzip)(json, FASTEST) : json,
        // Do not follow redirects: a redirected request may lose its body, and with it the events.
        redirect: 'manual',
        signal: attempt.signal,
      });
      return { response, text: await abortable(response.text(), attempt.signal) };
    } catch (error) {
      // Throw the cause, because it has the details. The message of the error itself is only "fetch failed".
      throw Object(error).cause ?? error;
    } finally {
      clearTimeout(timer);
      attempts.delete(attempt);
    }
  }

  return {
    /**
     * Sends events. Once the promise resolves, all events are durable, except for the rejected events that it returns.
     * @param texts 1 to 5,000 events as JSON
     * @throws NotAcceptedError if a server responds without accepting the events
     * @throws other errors if there is no complete response
     */
    send: async (texts: readonly string[]): Promise<readonly RejectedEvent[]> => {
      const { response, text } = await post(`[${texts.join()}]`);
      const { status, headers } = response;
      const rejectedEvents = status === 202 || status === 400 ? rejectedIn(parseJson(text), texts.length) : undefined;
      const early = rejectedEvents?.find(
        ({ index, reason }) => reason === EARLY && aheadMs(texts[index]) < MAX_EARLY_MS,
      );
      if (rejectedEvents && !early) return rejectedEvents;
      // An event is ahead of the local clock only if this clock was set back after the event. Then only earlier batches fail. Otherwise the
      // local clock is ahead of the collector's clock, and all batches fail.
      const isOfBatch = early ? aheadMs(texts[early.index]) > 0 : ABOUT_CONTENT.includes(status);
      const message = early?.message ?? (messageOf(text) || `the response is not from a collector; check url: ${text}`);
      throw new NotAcceptedError(status, message, isOfBatch, parseRetryAfter(headers.get('retry-after'), new Date()));
    },
    close: () => {
      for (const attempt of attempts) attempt.abort();
    },
  };
}

function messageOf(text: string): string {
  const { message, details } = membersOf(text);
  const reasons = Array.isArray(details) ? details.map((detail) => Object(detail).message) : [];
  return [message, ...reasons].filter((each) => typeof each === 'string').join(' ');
}

/** Returns how many milliseconds the timestamp is ahead of the local clock. Positive if the clock was set back after the recording. */
function aheadMs(text?: string): number {
  return Date.parse(String(membersOf(text)['timestamp'])) - Date.now();
}

/** Parses a JSON object. Returns an empty object for any other input. */
function membersOf(text = ''): Readonly<Record<string, unknown>> {
  return { ...Object(parseJson(text)) };
}
