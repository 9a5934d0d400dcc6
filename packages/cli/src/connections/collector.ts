/** The collector as `emit` uses it: each batch is sent until there is an answer for every event of it. */
import { setTimeout as delay } from 'node:timers/promises';
import { counted } from '@meterline/catalog';
import { z } from 'zod';
import { CommandError, EXIT_CODES, systemErrorCode, usageError } from '../command.js';
import type { RefusedEvent } from '../emit/emission.js';
import type { CollectorSettings } from '../settings/settings.js';

const ATTEMPTS = 4;
const ANSWER_WITHIN_MS = 30_000;
/** When the collector does not say when to come again. */
const PAUSE_SECONDS = 1;
const LONGEST_PAUSE_SECONDS = 60;

const results = z.object({
  results: z.array(
    z.object({ index: z.number(), status: z.string(), reason: z.string().optional(), message: z.string().optional() }),
  ),
});
const failure = z.object({ message: z.string() });

export interface CollectorOptions {
  readonly settings: CollectorSettings;
  /** Of events that name none. */
  readonly account: string | undefined;
  /** Events are checked, and none is kept. */
  readonly isTrial: boolean;
  readonly signal: AbortSignal;
}

/**
 * Sends events, those of each account in a request of its own.
 * @returns those that are refused; the others are in the queue
 * @throws CommandError when the collector does not take them; some may be in the queue then
 */
export async function sendToCollector(
  events: readonly object[],
  { settings, account: byDefault, isTrial, signal }: CollectorOptions,
): Promise<RefusedEvent[]> {
  const places = new Map<string, number[]>();
  const refused: RefusedEvent[] = [];
  for (const [index, event] of events.entries()) {
    const account = 'accountId' in event ? event.accountId : byDefault;
    if (typeof account !== 'string' || /^\.{0,2}$/.test(account)) {
      refused.push({
        index,
        message: 'invalid_account_id: accountId must name an account; --account is for events without one',
      });
    } else {
      places.set(account, [...(places.get(account) ?? []), index]);
    }
  }
  for (const [account, indices] of places) {
    const body = JSON.stringify(indices.map((index) => events[index]));
    const url = `${settings.url.value}/v0/accounts/${encodeURIComponent(account)}/events${isTrial ? '?validate=only' : ''}`;
    for (const { index, status, reason, message } of await answered(url, body, settings, signal)) {
      const place = indices[index];
      if (status === 'refused' && place !== undefined) refused.push({ index: place, message: `${reason}: ${message}` });
    }
  }
  return refused;
}

async function answered(url: string, body: string, { url: place, key }: CollectorSettings, signal: AbortSignal) {
  for (let attempt = 1; ; attempt += 1) {
    const outcome = await ask(url, body, key.value);
    if ('results' in outcome) return outcome.results;
    const { status, text, pause } = outcome;
    const said = `the collector at ${place.value} (from ${place.source}) ${text}`;
    if (status === 401 || status === 403)
      throw new CommandError(`${said} (key from ${key.source})`, EXIT_CODES.notAllowed);
    if (status !== undefined && status !== 408 && status !== 429 && status < 500) throw usageError(said);
    if (attempt === ATTEMPTS || signal.aborted) {
      throw new CommandError(`${said}, after ${counted(attempt, 'attempt')}`, EXIT_CODES.unavailable);
    }
    await delay(pause * 1_000, undefined, { signal }).catch(() => undefined);
  }
}

async function ask(url: string, body: string, key: string) {
  try {
    const response = await fetch(url, {
      method: 'POST',
      headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
      body,
      redirect: 'manual',
      signal: AbortSignal.timeout(ANSWER_WITHIN_MS),
    });
    const { status, headers } = response;
    const content: unknown = await response.json().catch(() => undefined);
    const answer = results.safeParse(content);
    // With 400 there are results, too, when no event is accepted.
    if (answer.success) return answer.data;
    const { message } = failure.safeParse(content).data ?? { message: 'which is no answer of a collector' };
    const seconds = Number(headers.get('retry-after') ?? PAUSE_SECONDS);
    const pause = seconds >= 0 ? Math.min(seconds, LONGEST_PAUSE_SECONDS) : PAUSE_SECONDS;
    return { status, text: `answered ${status}: ${message}`, pause };
  } catch (error) {
    const cause = error instanceof Error ? (error.cause ?? error) : error;
    const reason = systemErrorCode(cause) ?? (cause instanceof Error ? cause.message : String(cause));
    return { status: undefined, text: `does not answer: ${reason}`, pause: PAUSE_SECONDS };
  }
}
