/** Sending a stream of JSON lines in constant memory: to a collector, or to nobody where they are only checked. */
import { NO_ACCOUNT_PATH, parseUsageEvent } from '@meterline/catalog';
import { MeterlineClient, MeterlineError } from '@meterline/client';
import { withClientErrors } from './connections/api.js';
import { jsonLines } from './input.js';
import type { CollectorSettings } from './settings.js';

/** A batch is sent at this size even if it could hold more events: lines may be long. */
const MAX_BATCH_BYTES = 4 * 1024 * 1024;

/** Bad lines beyond this many are only counted: a file may have any number of them. */
const LISTED_BAD_LINES = 100;

/** What has become of some of the events that were sent together; `index` is a place among those. */
interface Outcome {
  readonly accepted: number;
  readonly rejected: readonly { readonly index: number; readonly message: string }[];
}

/** @returns what becomes of the events, as it is known */
export type Send = (events: readonly object[]) => AsyncIterable<Outcome>;

/** How far an emission has come. */
export interface EmissionTally {
  /** Events that were accepted; of those that are only checked, those that passed. */
  events: number;
  jobs: number;
  /** Every good line up to this one is sent, or rejected by the collector. */
  lastSentLine: number;
  badLines: number;
  readonly listedBadLines: { readonly line: number; readonly message: string }[];
}

export function emptyTally(): EmissionTally {
  return { events: 0, jobs: 0, lastSentLine: 0, badLines: 0, listedBadLines: [] };
}

export interface EmissionOptions {
  readonly input: AsyncIterable<Buffer>;
  readonly send: Send;
  readonly batchSize: number;
  readonly signal: AbortSignal;
}

/**
 * Sends every line that is an object and counts the others. An abort is not an error: it ends the emission between two batches.
 * @param tally kept up to date all along, so that it says how far things came when this rejects
 */
export async function emitLines(options: EmissionOptions, tally: EmissionTally): Promise<void> {
  const { input, send, batchSize, signal } = options;
  let batch: { readonly line: number; readonly object: object }[] = [];
  let batchBytes = 0;
  const flush = async () => {
    for await (const { accepted, rejected } of send(batch.map(({ object }) => object))) {
      for (const { index, message } of rejected) note(tally, batch[index]?.line ?? 0, message);
      tally.events += accepted;
      if (accepted > 0) tally.jobs += 1;
    }
    tally.lastSentLine = batch.at(-1)?.line ?? tally.lastSentLine;
    [batch, batchBytes] = [[], 0];
  };
  try {
    for await (const line of jsonLines(input)) {
      if ('fault' in line) {
        note(tally, line.number, line.fault);
        continue;
      }
      batch.push({ line: line.number, object: line.object });
      batchBytes += line.bytes;
      if (batch.length === batchSize || batchBytes >= MAX_BATCH_BYTES) await flush();
      if (signal.aborted) return;
    }
    if (!signal.aborted && batch.length > 0) await flush();
  } catch (error) {
    // When it is aborted, the input ends with an error while nothing comes in, and so does what is being sent.
    if (!signal.aborted) throw error;
  }
}

/** The message may quote the line, whose control characters must not reach a terminal. */
function note(tally: EmissionTally, line: number, message: string): void {
  tally.badLines += 1;
  if (tally.listedBadLines.length >= LISTED_BAD_LINES) return;
  tally.listedBadLines.push({ line, message: message.replace(/\p{Cc}/gu, '\uFFFD') });
}

/** Holds events to the rules of the collector and the worker, and sends them to nobody. */
export function onlyChecked(now: () => Date): Send {
  return async function* (events) {
    const rejected = events.flatMap((event, index) => {
      const checked = parseUsageEvent(event, now().getTime());
      return checked.ok ? [] : [{ index, message: `${checked.reason}: ${checked.message}` }];
    });
    yield { accepted: events.length - rejected.length, rejected };
  };
}

export interface CollectorOptions {
  /** Of events that name none. */
  readonly account: string | undefined;
  /** Events are checked, and none is kept. */
  readonly isTrial: boolean;
  readonly signal: AbortSignal;
}

/**
 * Sends the events of each account in a request of its own, or in several if one would be too large.
 * @throws CommandError when the collector does not take them; some may be in the queue then
 * @throws the signal's reason once it is aborted
 */
export function toCollector(
  { url, key }: CollectorSettings,
  { account: own, isTrial, signal }: CollectorOptions,
): Send {
  const client = new MeterlineClient({ baseUrl: url.value, credential: key.value });

  async function* sendOfAccount(account: string, sent: readonly Placed[]): AsyncGenerator<Outcome> {
    const events = sent.map(({ event }) => event);
    const receipt = await withClientErrors({ url, key, server: 'collector' }, () =>
      client.sendEvents(account, events, { isTrial, signal }).catch(tooLarge),
    );
    if (!(receipt instanceof MeterlineError)) {
      const rejected = receipt.rejected.map(({ index, reason, message }) => ({
        index: sent[index]?.index ?? 0,
        message: `${reason}: ${message}`,
      }));
      yield { accepted: receipt.accepted, rejected };
    } else if (sent.length > 1) {
      const half = Math.ceil(sent.length / 2);
      yield* sendOfAccount(account, sent.slice(0, half));
      yield* sendOfAccount(account, sent.slice(half));
    } else {
      yield { accepted: 0, rejected: sent.map(({ index }) => ({ index, message: `too large: ${receipt.message}` })) };
    }
  }

  return async function* (events) {
    const accounts = new Map<string, Placed[]>();
    const rejected: { index: number; message: string }[] = [];
    for (const [index, event] of events.entries()) {
      const account = 'accountId' in event ? event.accountId : own;
      if (typeof account === 'string' && !NO_ACCOUNT_PATH.test(account)) {
        accounts.set(account, [...(accounts.get(account) ?? []), { index, event }]);
      } else {
        const message = 'invalid_account_id: accountId must name an account; --account is for events without one';
        rejected.push({ index, message });
      }
    }
    yield { accepted: 0, rejected };
    for (const [account, sent] of accounts) yield* sendOfAccount(account, sent);
  };
}

/** An event and its place among those that are sent together. */
interface Placed {
  readonly index: number;
  readonly event: object;
}

function tooLarge(error: unknown): MeterlineError {
  if (error instanceof MeterlineError && error.status === 413) return error;
  throw error;
}
