/**
 * Takes events from the backlog in batches, whatever their accounts, and sends each until it has succeeded, several at once. However often
 * an event is sent, its id counts once.
 *
 * While the collector is away, or rejects the key, everything waits. A batch that is rejected as a whole for its content is halved until the
 * event at fault waits alone. Events of accounts that the key may not send for wait alone too, once others have been accepted.
 */
import { EventEmitter, once, setMaxListeners } from 'node:events';
import { setTimeout as delay } from 'node:timers/promises';
import { backOffMs, NOT_ALLOWED, type RejectedEvent } from '@meterline/catalog/plain';
import type { Backlog, Batch } from './backlog.js';
import { type Collector, NotTaken } from './collector.js';
import { type CheckedOptions, LONGEST_MS } from './options.js';
import { errorMessage, type Report, rejectedProblem, type Tally } from './problems.js';

/** Concurrent requests. */
const MOST_REQUESTS = 4;
/** The most JSON of a request, unless a single event has more. */
const BATCH_BYTES = 1024 * 1024;
const PAUSE = { firstMs: 50, longestMs: 5_000 };
/** With more batches that wait alone, everything waits. */
const MOST_ALONE = 64;
/** The share of the memory for events that the key may not send. More of them are rejected, so that they never hold up others. */
const NOT_ALLOWED_SHARE = 1 / 4;

/** Begins with what was found in the spool. */
export function startSender(
  backlog: Backlog,
  collector: Collector,
  limits: Pick<CheckedOptions, 'batchEvents' | 'batchMs' | 'memoryBytes'>,
  tally: Tally,
  report: Report,
) {
  /** Batches that are taken and not settled, oldest first. */
  const batches = new Set<Batch>();
  /** Taken batches that can be sent at once. */
  const ready: Batch[] = [];
  const tried = new WeakSet<Batch>();
  /** Batches that were rejected for their content. */
  const refused = new WeakSet<Batch>();
  /** Batches of events that the key may not send. */
  const notAllowed = new Set<Batch>();
  /** How many batches wait alone. */
  let alone = 0;
  /** What the program was told of since it last succeeded. */
  const reported = new Set<'everything' | 'batch'>();
  /** Emits `change`, upon which everybody looks again. */
  const state = new EventEmitter().setMaxListeners(0);
  /** Until its end nothing is sent. */
  let pause: NodeJS.Timeout | undefined;
  /** When the pause ends, by performance.now(). */
  let pauseEndsAt = 0;
  /** Pauses since something was taken. */
  let pauses = 0;
  const stopped = new AbortController();
  // A listener for each batch that waits.
  setMaxListeners(0, stopped.signal);
  let requests = 0;
  /** Of all batches. */
  let bytes = 0;
  /** The number of the first event that is in no batch yet; the backlog counts it as taken a little earlier. */
  let batched = 0;
  /** Events with a lower number are to be sent now, in batches of any size. */
  let due = backlog.added;
  let timer: NodeJS.Timeout | undefined;

  const changed = () => state.emit('change');

  function fillsBatch(): boolean {
    return backlog.added - backlog.taken >= limits.batchEvents || backlog.usedBytes - bytes >= BATCH_BYTES;
  }

  function mayTake(): boolean {
    return bytes < limits.memoryBytes && (backlog.taken < due || fillsBatch());
  }

  function sendAll(): void {
    clearTimeout(timer);
    timer = undefined;
    due = backlog.added;
    changed();
  }

  async function run(): Promise<void> {
    while (!stopped.signal.aborted) {
      // Awaited after looking, so that nothing is missed that happens meanwhile.
      const change = once(state, 'change');
      while (!stopped.signal.aborted && !pause && requests < MOST_REQUESTS) {
        const batch = ready.shift();
        if (batch) void deliver(batch);
        else if (!mayTake() || !(await take())) break;
      }
      await change;
    }
  }

  /** Takes the next batch. @returns false when there is none */
  async function take(): Promise<boolean> {
    const batch = await backlog.take(limits.batchEvents, BATCH_BYTES);
    if (batch) {
      batches.add(batch);
      bytes += batch.bytes;
      ready.push(batch);
    }
    batched = backlog.taken;
    // A flush looks again: unreadable events count as sent.
    changed();
    return batch !== undefined;
  }

  async function deliver(batch: Batch): Promise<void> {
    requests += 1;
    if (tried.has(batch)) tally.retried += batch.texts.length;
    tried.add(batch);
    try {
      const rejectedEvents = await collector.send(batch.texts);
      // After the stop another process may have the spool.
      if (!stopped.signal.aborted) receive(batch, rejectedEvents);
    } catch (error) {
      if (!stopped.signal.aborted) keepBack(batch, error);
    }
    requests -= 1;
    changed();
  }

  function keepBack(batch: Batch, cause: unknown): void {
    const { code, isOfBatch, isTrouble, pauseMs } = cause instanceof NotTaken ? cause : AWAY;
    // The random part keeps producers from coming back all at the moment that they were told.
    const requestedMs = pauseMs * (1 + Math.random() / 4);
    if (isOfBatch) {
      const middle = notAllowed.has(batch) ? 0 : batch.texts.length / 2;
      for (const part of divide(batch, (index) => index < middle)) waitAlone(part, requestedMs);
      if (alone > MOST_ALONE) pauseEverything(requestedMs);
    } else {
      pauseEverything(requestedMs);
      resend(batch);
    }
    const what = isOfBatch ? 'batch' : 'everything';
    if (reported.has(what) || !isTrouble) return;
    reported.add(what);
    const which = isOfBatch ? 'some usage events' : 'usage events';
    report({ code, message: `${which} cannot be sent, and wait: ${errorMessage(cause)}`, cause });
  }

  function resend(batch: Batch): void {
    ready.push(batch);
    changed();
  }

  function waitAlone(batch: Batch, milliseconds: number): void {
    refused.add(batch);
    alone += 1;
    const end = () => {
      alone -= 1;
      resend(batch);
    };
    delay(milliseconds, undefined, { signal: stopped.signal }).then(end, () => undefined);
  }

  /** @returns two batches; the batch itself if one of them would be empty */
  function divide(batch: Batch, isFirst: (index: number) => boolean): Batch[] {
    const lists = [true, false].map((first) => batch.texts.filter((_, index) => isFirst(index) === first));
    if (lists.some((texts) => texts.length === 0)) return [batch];
    batches.delete(batch);
    return lists.map((texts) => {
      const part = { ...batch, texts, bytes: textBytes(texts) };
      batches.add(part);
      tried.add(part);
      return part;
    });
  }

  /** Each pause is twice as long as the one before, until something is taken, and lasts at least as long as was requested. */
  function pauseEverything(requestedMs: number): void {
    const now = performance.now();
    if (pause && now + requestedMs <= pauseEndsAt) return;
    const lastsMs = pause ? requestedMs : Math.max(requestedMs, backOffMs(pauses++, PAUSE));
    clearTimeout(pause);
    pauseEndsAt = now + lastsMs;
    pause = setTimeout(() => {
      pause = undefined;
      changed();
    }, lastsMs);
  }

  /** Keeps the events that the key may not send, for a key that may. While nothing was ever accepted, the key itself may be wrong. */
  function receive(batch: Batch, rejectedEvents: readonly RejectedEvent[]): void {
    notAllowed.delete(batch);
    const kept = new Set(rejectedEvents.filter(({ reason }) => reason === NOT_ALLOWED).map(({ index }) => index));
    const isKeyWrong = tally.sent === 0 && kept.size === batch.texts.length;
    const keptBytes = textBytes(batch.texts.filter((_, index) => kept.has(index)));
    const used = [...notAllowed].reduce((sum, other) => sum + other.bytes, keptBytes);
    if (!isKeyWrong && used > limits.memoryBytes * NOT_ALLOWED_SHARE) kept.clear();
    if (kept.size === 0) {
      settle(batch, rejectedEvents);
      return;
    }
    const [part = batch, others] = divide(batch, (index) => kept.has(index));
    if (others)
      settle(
        others,
        rejectedEvents.filter(({ index }) => !kept.has(index)),
        batch.texts,
      );
    if (!isKeyWrong) notAllowed.add(part);
    const message = rejectedEvents.find(({ index }) => kept.has(index))?.message ?? '';
    keepBack(part, new NotTaken(403, message, !isKeyWrong));
  }

  /** @param sent the texts that the rejected events are of */
  function settle(batch: Batch, rejectedEvents: readonly RejectedEvent[], sent = batch.texts): void {
    // A pause lasts for its time all the same: it may have been asked for.
    pauses = 0;
    reported.delete('everything');
    if (refused.has(batch)) reported.delete('batch');
    tally.sent += batch.texts.length - rejectedEvents.length;
    tally.rejected += rejectedEvents.length;
    for (const { index, reason, message } of rejectedEvents) {
      report(rejectedProblem(reason, message, JSON.parse(sent[index] ?? 'null')));
    }
    batches.delete(batch);
    bytes -= batch.bytes;
    backlog.settle(batch);
  }

  /** The number of an event before which all are sent. */
  function sentUpTo(): number {
    let first = batched;
    for (const batch of batches) first = Math.min(first, batch.first);
    return first;
  }

  void run();
  return {
    /** An event was added. Nothing is sent before the caller's turn is over: `record` has no time for it. */
    added: () => {
      timer ??= setTimeout(sendAll, limits.batchMs);
      if (fillsBatch()) changed();
    },
    /** Sends what there is now. @returns whether all of it was sent within the time */
    flush: async (timeoutMs: number) => {
      const target = backlog.added;
      const late = AbortSignal.timeout(Math.ceil(Math.max(0, Math.min(timeoutMs, LONGEST_MS))));
      sendAll();
      const look = () => once(state, 'change', { signal: late }).catch(() => undefined);
      while (sentUpTo() < target && !late.aborted && !stopped.signal.aborted) await look();
      return sentUpTo() >= target;
    },
    /** Cancels the requests in flight. */
    stop: () => {
      for (const each of [timer, pause]) clearTimeout(each);
      stopped.abort();
      collector.close();
      changed();
    },
  };
}

/** No response: the collector, or the way to it, is away. */
const AWAY = { code: 'unreachable', isOfBatch: false, isTrouble: true, pauseMs: 0 } as const;

function textBytes(texts: readonly string[]): number {
  return texts.reduce((sum, text) => sum + Buffer.byteLength(text), 0);
}
