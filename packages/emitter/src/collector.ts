/** Sends events to Meterline's collector over HTTP, with Node's own client. */
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

/** For an attempt, from the connection to the end of the response. */
const TIMEOUT_MS = 10_000;
/** When the collector does not take events, nor says when to come again. */
const HELD_MS = 5_000;
const LONGEST_RETRY_AFTER_MS = 600_000;
/** The catalog's code for an event that comes too early. */
const EARLY = 'timestamp_in_future';
/** More than a clock is ahead that takes the time of its zone for UTC. An event that is further ahead is rejected for good. */
const LONGEST_EARLY_MS = 86_400_000;
/** Statuses that may concern one event of a request: a proxy rejects it, or the collector fails on it. */
const ABOUT_CONTENT: readonly number[] = [400, 413, 500];
/** From here on a body is compressed: 500 events to a fifth, in less than a millisecond of another thread. */
const COMPRESSED_FROM_BYTES = 4_096;
const FASTEST = { level: 1 };
const LONGEST_MESSAGE = 300;
/** What a header can carry. The client would repeat any other key in its error message. */
const KEY = /^[!-~]+$/;

/** A key, or what gives it: called before every attempt, so that the key can be renewed. */
export type ApiKey = string | (() => string | Promise<string>);

/** A server has responded, and has not taken the events; they are kept. */
export class NotTaken extends Error {
  readonly code: 'unreachable' | 'held';
  /** The shortest time before the events are sent again, in milliseconds. */
  readonly pauseMs: number;
  /** Whether the program should know. That a busy collector asks for a short pause is nothing to report. */
  readonly isTrouble: boolean;

  /** @param isOfBatch whether other events may be taken */
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

/** @throws EmitterError `invalid_option`, whose message does not repeat the address or the key, because either may hold a secret */
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
    /**
     * Resolves when the events are accepted, but for those that are rejected: from then on Meterline is responsible for them.
     * @param texts events as JSON, 1 to 5,000
     * @throws NotTaken when a server responds and does not take them, another error when none does or that is not known
     */
    send: async (texts: readonly string[]): Promise<readonly RejectedEvent[]> => {
      const { response, text } = await post(`[${texts.join()}]`);
      const { status, headers } = response;
      const rejectedEvents = status === 202 || status === 400 ? rejectedIn(parseJson(text), texts.length) : undefined;
      const early = rejectedEvents?.find(
        ({ index, reason }) => reason === EARLY && aheadMs(texts[index]) < LONGEST_EARLY_MS,
      );
      if (rejectedEvents && !early) return rejectedEvents;
      // If this clock was set back since, only these events are early; while it is ahead, all are.
      const isOfBatch = early ? aheadMs(texts[early.index]) > 0 : ABOUT_CONTENT.includes(status);
      const message = early?.message ?? (messageOf(text) || `is url the collector's? It says: ${text}`);
      throw new NotTaken(status, message, isOfBatch, parseRetryAfter(headers.get('retry-after'), new Date()));
    },
    /** Closes connections at once. Requests in flight reject. */
    close: () => {
      for (const attempt of attempts) attempt.abort();
    },
  };
}

/** What an error response says, and why: its details have a message each. */
function messageOf(text: string): string {
  const { message, details } = membersOf(text);
  const reasons = Array.isArray(details) ? details.map((detail) => Object(detail).message) : [];
  return [message, ...reasons].filter((each) => typeof each === 'string').join(' ');
}

/** How long the event's time is ahead of the clock here, which may have been set meanwhile. */
function aheadMs(text?: string): number {
  return Date.parse(String(membersOf(text)['timestamp'])) - Date.now();
}

/** The members of the object that a text of JSON is; none for any other text. */
function membersOf(text = ''): Readonly<Record<string, unknown>> {
  return { ...Object(parseJson(text)) };
}
