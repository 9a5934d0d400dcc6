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

/** Timeout of an attempt, from connecting to the end of the response. */
const TIMEOUT_MS = 10_000;
/** Pause after a rejected request without Retry-After. */
const HELD_MS = 5_000;
const LONGEST_RETRY_AFTER_MS = 600_000;
/** The catalog's reason for an event with a timestamp in the future. */
const EARLY = 'timestamp_in_future';
/** A clock that uses local time as UTC is ahead by less. An event that is further ahead is rejected permanently. */
const LONGEST_EARLY_MS = 86_400_000;
/** Statuses that a single event of the request may cause: a proxy rejects its content, or the collector fails on it. */
const ABOUT_CONTENT: readonly number[] = [400, 413, 500];
/** Larger bodies are compressed. 500 events shrink to a fifth, in less than a millisecond of another thread. */
const COMPRESSED_FROM_BYTES = 4_096;
const FASTEST = { level: 1 };
const LONGEST_MESSAGE = 300;
/** Characters that a header allows. For any other key, the error message of `fetch` would contain the key. */
const KEY = /^[!-~]+$/;

/** A key, or a function that returns the key. The function is called before every attempt, so that the key can be renewed. */
export type ApiKey = string | (() => string | Promise<string>);

/** The error for a response that does not accept the events. The emitter keeps them. */
export class NotTaken extends Error {
  readonly code: 'unreachable' | 'held';
  /** Minimum time before the events are sent again, in milliseconds. */
  readonly pauseMs: number;
  /** Whether to report the error to the program. A short pause of a busy collector is not reported. */
  readonly isTrouble: boolean;

  /** @param isOfBatch whether the collector may accept other events */
  constructor(
    status: number,
    message: string,
    readonly isOfBatch: boolean,
    retryAfterMs?: number,
  ) {
    super(`${status}, ${message.slice(0, LONGEST_MESSAGE)}`);
    const isAway = isAwayStatus(status) && !isOfBatch;
    this.code = isAway ? 'unreachable' : 'held';
    this.pauseMs = Math.min(retryAfterMs ?? (isAway ? 0 : HELD_MS), LONGEST_RETRY_AFTER_MS);
    this.isTrouble = isAway || this.pauseMs >= HELD_MS;
  }
}

export type Collector = ReturnType<typeof openCollector>;

/** @throws EmitterError `invalid_option`; its message contains neither the URL nor the key, because both may contain a secret */
export function openCollector(url: string, apiKey: ApiKey, send: typeof fetch = (input, init) => fetch(input, init)) {
  const base = serviceAddress(url, (problem) => new EmitterError('invalid_option', `the collector's url ${problem}`));
  const newKey = async () => (typeof apiKey === 'function' ? apiKey() : apiKey);
  if (typeof apiKey !== 'function' && !KEY.test(apiKey ?? '')) {
    throw new EmitterError('invalid_option', 'a collector needs apiKey, a key of role emitter');
  }
  const attempts = new Set<AbortController>();

  async function post(json: string) {
    const isLarge = json.length >= COMPRESSED_FROM_BYTES;
    const attempt = new AbortController();
    const timer = setTimeout(() => attempt.abort(new Error(`no response within ${TIMEOUT_MS / 1_000} s`)), TIMEOUT_MS);
    attempts.add(attempt);
    try {
      const key = await abortable(newKey(), attempt.signal);
      if (!KEY.test(key ?? '')) throw new Error('apiKey returns no key');
      const response = await send(`${base}/v0/events`, {
        method: 'POST',
        headers: {
          authorization: `Bearer ${key}`,
          'content-type': 'application/json',
          ...(isLarge && { 'content-encoding': 'gzip' }),
        },
        body: isLarge ? await promisify(gzip)(json, FASTEST) : json,
        // Following a redirect may lose the body, and thus the events.
        redirect: 'manual',
        signal: attempt.signal,
      });
      return { response, text: await abortable(response.text(), attempt.signal) };
    } catch (error) {
      // The message of fetch is only "fetch failed"; its cause has the details.
      throw Object(error).cause ?? error;
    } finally {
      clearTimeout(timer);
      attempts.delete(attempt);
    }
  }

  return {
    /**
     * Sends events. Once this resolves, all events are durable except the rejected events that it returns.
     * @param texts 1 to 5,000 events as JSON
     * @throws NotTaken if a server responds without accepting the events; another error if there is no complete response
     */
    send: async (texts: readonly string[]): Promise<readonly RejectedEvent[]> => {
      const { response, text } = await post(`[${texts.join()}]`);
      const { status, headers } = response;
      const rejectedEvents = status === 202 || status === 400 ? rejectedIn(parseJson(text), texts.length) : undefined;
      const early = rejectedEvents?.find(
        ({ index, reason }) => reason === EARLY && aheadMs(texts[index]) < LONGEST_EARLY_MS,
      );
      if (rejectedEvents && !early) return rejectedEvents;
      // If the local clock was set back meanwhile, only these events are early. While it is ahead, all events are.
      const isOfBatch = early ? aheadMs(texts[early.index]) > 0 : ABOUT_CONTENT.includes(status);
      const message = early?.message ?? (messageOf(text) || `is url the collector's? It says: ${text}`);
      throw new NotTaken(status, message, isOfBatch, parseRetryAfter(headers.get('retry-after'), new Date()));
    },
    /** Aborts requests in flight, which reject. */
    close: () => {
      for (const attempt of attempts) attempt.abort();
    },
  };
}

/** Returns the message of an error response and the messages of its details. */
function messageOf(text: string): string {
  const { message, details } = membersOf(text);
  const reasons = Array.isArray(details) ? details.map((detail) => Object(detail).message) : [];
  return [message, ...reasons].filter((each) => typeof each === 'string').join(' ');
}

/** Returns by how many milliseconds the event's timestamp is ahead of the local clock, which may have been set meanwhile. */
function aheadMs(text?: string): number {
  return Date.parse(String(membersOf(text)['timestamp'])) - Date.now();
}

/** Parses a JSON object. Returns an empty object for any other text. */
function membersOf(text = ''): Readonly<Record<string, unknown>> {
  return { ...Object(parseJson(text)) };
}
