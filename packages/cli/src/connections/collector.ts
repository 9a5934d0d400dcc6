/** The collector as `emit` uses it: each batch is sent until there is an answer for every event of it. */
import { setTimeout as delay } from 'node:timers/promises';
import { counted, NO_ACCOUNT_PATH, parseJson, parseRetryAfter } from '@meterline/catalog';
import { z } from 'zod';
import { CommandError, EXIT_CODES, systemErrorCode, usageError } from '../command.js';
import type { Outcome, RefusedEvent } from '../emit/emission.js';
import type { CollectorSettings } from '../settings/settings.js';

const ATTEMPTS = 4;
const ANSWER_WITHIN_MS = 30_000;
/** When the collector does not say when to come again. */
const PAUSE_MS = 1_000;
/** Nobody sits before a terminal for longer. */
const LONGEST_PAUSE_MS = 60_000;

export interface CollectorOptions {
  readonly settings: CollectorSettings;
  /** Of events that name none. */
  readonly account: string | undefined;
  /** Events are checked, and none is kept. */
  readonly isTrial: boolean;
  readonly signal: AbortSignal;
}

/**
 * Sends events, those of each account in a request of its own, or in several if one would be too large.
 * @returns what has become of those of each request, as it is answered; what is not refused is in the queue
 * @throws CommandError when the collector does not take them; some may be in the queue then
 * @throws the signal's reason once it is aborted
 */
export async function* sendToCollector(events: readonly object[], options: CollectorOptions): AsyncGenerator<Outcome> {
  const places = new Map<string, number[]>();
  const refused: RefusedEvent[] = [];
  for (const [index, event] of events.entries()) {
    const account = 'accountId' in event ? event.accountId : options.account;
    if (typeof account !== 'string' || NO_ACCOUNT_PATH.test(account)) {
      refused.push({
        index,
        message: 'invalid_account_id: accountId must name an account; --account is for events without one',
      });
    } else {
      places.set(account, [...(places.get(account) ?? []), index]);
    }
  }
  yield { accepted: 0, refused };
  for (const [account, indices] of places) yield* sendOfAccount(account, events, indices, options);
}

/** @param indices of those to send */
async function* sendOfAccount(
  account: string,
  events: readonly object[],
  indices: readonly number[],
  options: CollectorOptions,
): AsyncGenerator<Outcome> {
  const answer = await answered(
    account,
    indices.map((index) => events[index]),
    options,
  );
  if ('refusals' in answer) {
    const refused = answer.refusals.map(({ index, message }) => ({ index: indices[index] ?? 0, message }));
    yield { accepted: indices.length - refused.length, refused };
  } else if (indices.length > 1) {
    const half = Math.ceil(indices.length / 2);
    yield* sendOfAccount(account, events, indices.slice(0, half), options);
    yield* sendOfAccount(account, events, indices.slice(half), options);
  } else {
    yield { accepted: 0, refused: indices.map((index) => ({ index, message: `the collector ${answer.tooLarge}` })) };
  }
}

/** An answer for every event, or that they are too much for one request. */
type Answered = { readonly refusals: readonly RefusedEvent[] } | { readonly tooLarge: string };

async function answered(
  account: string,
  events: readonly unknown[],
  { settings: { url: place, key }, isTrial, signal }: CollectorOptions,
): Promise<Answered> {
  const url = `${place.value}/v0/accounts/${encodeURIComponent(account)}/events${isTrial ? '?validate=only' : ''}`;
  const body = JSON.stringify(events);
  for (let attempt = 1; ; attempt += 1) {
    const { status, text, ...answer } = await ask(url, body, key.value, signal);
    const refusals = text === undefined ? undefined : refusalsIn(text, status, events.length, isTrial);
    if (refusals) return { refusals };
    const fault = answer.fault ?? `answered ${status}: ${messageIn(text)}`;
    if (status === 413) return { tooLarge: fault };
    const said = `the collector at ${place.value} (from ${place.source}) ${fault}`;
    if (status === 401 || status === 403)
      throw new CommandError(`${said} (key from ${key.source})`, EXIT_CODES.notAllowed);
    if (status !== undefined && status !== 408 && status !== 429 && status < 500) throw usageError(said);
    const { pauseMs = PAUSE_MS } = answer;
    if (pauseMs > LONGEST_PAUSE_MS) {
      const message = `${said}; it may be asked again in ${Math.ceil(pauseMs / 1_000)} s`;
      throw new CommandError(message, EXIT_CODES.unavailable);
    }
    if (attempt === ATTEMPTS) {
      throw new CommandError(`${said}, after ${counted(attempt, 'attempt')}`, EXIT_CODES.unavailable);
    }
    await delay(pauseMs, undefined, { signal });
  }
}

interface Answer {
  /** Undefined when there is no answer, or not all of it. */
  readonly status?: number;
  readonly text?: string;
  /** What is wrong then. */
  readonly fault?: string;
  readonly pauseMs?: number | undefined;
}

/** @throws the signal's reason once it is aborted */
async function ask(url: string, body: string, key: string, signal: AbortSignal): Promise<Answer> {
  try {
    const response = await fetch(url, {
      method: 'POST',
      headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
      body,
      redirect: 'manual',
      signal: AbortSignal.any([signal, AbortSignal.timeout(ANSWER_WITHIN_MS)]),
    });
    const { status, headers } = response;
    const pauseMs = parseRetryAfter(headers.get('retry-after'), new Date());
    return { status, text: await response.text(), pauseMs };
  } catch (error) {
    signal.throwIfAborted();
    const cause = error instanceof Error ? (error.cause ?? error) : error;
    const reason = systemErrorCode(cause) ?? (cause instanceof Error ? cause.message : String(cause));
    return { fault: `does not answer: ${reason}` };
  }
}

const receipt = z.object({
  accepted: z.number(),
  results: z.array(
    z.object({ index: z.number(), status: z.string(), reason: z.string().optional(), message: z.string().optional() }),
  ),
});

/** Undefined for an answer that does not account for each event: nothing is known then. */
function refusalsIn(
  text: string,
  status: number | undefined,
  events: number,
  isTrial: boolean,
): RefusedEvent[] | undefined {
  // With 400 there are results, too, when no event is accepted.
  if (isTrial ? status !== 200 : status !== 202 && status !== 400) return undefined;
  const answer = receipt.safeParse(parseJson(text));
  if (!answer.success) return undefined;
  const { accepted, results } = answer.data;
  const refusals = new Map<number, RefusedEvent>();
  for (const { index, status: outcome, reason, message } of results) {
    const isOne = Number.isInteger(index) && index >= 0 && index < events;
    if (outcome === 'refused' && isOne) refusals.set(index, { index, message: `${reason}: ${message}` });
  }
  return accepted === events - refusals.size ? [...refusals.values()] : undefined;
}

const failure = z.object({ message: z.string() });

function messageIn(text = ''): string {
  return failure.safeParse(parseJson(text)).data?.message ?? 'which is no answer of a collector';
}
