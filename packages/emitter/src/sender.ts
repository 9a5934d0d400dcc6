/**
 * Sends the events of the backlog in batches, several at a time. Retries each batch until it succeeds. A batch can contain events of
 * several accounts. Meterline counts each event ID once, no matter how often the event is sent.
 *
 * If the collector is unreachable or rejects the key, all batches wait. If the collector rejects a batch because of its content, the batch
 * is split in half repeatedly, until the faulty event is alone in its batch. Only that batch then waits.
 *
 * If the key may not send the events of some accounts, these events also wait in batches of their own. But until the collector has accepted
 * any event, all batches wait, because the key itself is probably wrong.
 */
import { EventEmitter, once, setMaxListeners } from 'node:events';
import { setTimeout as delay } from 'node:timers/promises';
import { backOffMs, NOT_ALLOWED, type RejectedEvent } from '@meterline/catalog/plain';
import type { Backlog, Batch } from './backlog.js';
import { type Collector, NotAcceptedError } from './collector.js';
import { type CheckedOptions, MAX_TIMER_MS } from './options.js';
import { errorMessage, type Report, rejectedProblem, type Tally } from './problems.js';

const MAX_REQUESTS = 4;
/** Maximum bytes of a batch as JSON. A single event may be larger. */
const BATCH_BYTES = 1024 * 1024;
const PAUSE = { firstMs: 50, longestMs: 5_000 };
/** Maximum number of rejected batches that wait separately for their retry. If there are more, all sending pauses. */
const MAX_ALONE = 64;
/** Maximum share of memory for events that the key may not send. Beyond it, such events are rejected, so that they never block other events. */
const NOT_ALLOWED_SHARE = 1 / 4;

export function startSender(
  backlog: Backlog,
  collector: Collector,
  limits: Pick<CheckedOptions, 'batchEvents' | 'batchMs' | 'memoryBytes'>,
  tally: Tally,
  report: Report,
) {
  /** Batches that were taken from the backlog, and whose events are neither accepted nor finally rejected yet. */
  const batches = new Set<Batch>();
  const ready: Batch[] = [];
  const tried = new WeakSet<Batch>();
  const rejectedBatches = new WeakSet<Batch>();
  const notAllowed = new Set<Batch>();
  let alone = 0;
  /** Problems that the program already knows of, until the next success: `everything` stops all sending, and `batch` only some batches. */
  const reported = new Set<'everything' | 'batch'>();
  /** Emits `change` after every change of state, so that waiting loops check their conditions again. */
  const state = new EventEmitter().setMaxListeners(0);
  let pause: NodeJS.Timeout | undefined;
  /** End of the pause on the clock of `performance.now()`. */
  let pauseEndsAt = 0;
  let pauses = 0;
  const stopped = new AbortController();
  // Remove the limit on listeners, because each waiting batch adds a listener.
  setMaxListeners(0, stopped.signal);
  let requests = 0;
  let bytes = 0;
  /** Number of the first event that is not in a batch yet. Not `backlog.taken`, which increases slightly before the batch exists. */
  let batched = 0;
  /** Events with a lower number are sent now, without waiting for a full batch. */
  let due = backlog.added;
  let timer: NodeJS.Timeout | undefined;

  const changed = () => state.emit('change');

  function fillsBatch(): boolean {
    return backlog.added - backlog.taken >= limits.batchEvents || backlog.usedBytes - bytes >= BATCH_BYTES;
  }

  function canTake(): boolean {
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
      // Subscribe before checking the state, so that no change is missed.
      const change = once(state, 'change');
      while (!stopped.signal.aborted && !pause && requests < MAX_REQUESTS) {
        const batch = ready.shift();
        if (batch) void deliver(batch);
        else if (!canTake() || !(await take())) break;
      }
      await change;
    }
  }

  /** Takes the next batch from the backlog. @returns false if the backlog is empty */
  async function take(): Promise<boolean> {
    const batch = await backlog.take(limits.batchEvents, BATCH_BYTES);
    if (batch) {
      batches.add(batch);
      bytes += batch.bytes;
      ready.push(batch);
    }
    batched = backlog.taken;
    // Emit a change even without a batch: events that the spool cannot read count as sent, so a flush that waits may now be complete.
    changed();
    return batch !== undefined;
  }

  async function deliver(batch: Batch): Promise<void> {
    requests += 1;
    if (tried.has(batch)) tally.retried += batch.texts.length;
    tried.add(batch);
    try {
      const rejectedEvents = await collector.send(batch.texts);
      // Ignore the result after `stop`, because another process may own the spool by then.
      if (!stopped.signal.aborted) receive(batch, rejectedEvents);
    } catch (error) {
      if (!stopped.signal.aborted) keepBack(batch, error);
    }
    requests -= 1;
    changed();
  }

  function keepBack(batch: Batch, cause: unknown): void {
    const { code, isOfBatch, isTrouble, pauseMs } = cause instanceof NotAcceptedError ? cause : AWAY;
    // The jitter keeps emitters from all retrying at the same moment.
    const requestedMs = pauseMs * (1 + Math.random() / 4);
    if (isOfBatch) {
      const middle = notAllowed.has(batch) ? 0 : batch.texts.length / 2;
      for (const part of divide(batch, (index) => index < middle)) waitAlone(part, requestedMs);
      if (alone > MAX_ALONE) pauseEverything(requestedMs);
    } else {
      pauseEverything(requestedMs);
      resend(batch);
    }
    const scope = isOfBatch ? 'batch' : 'everything';
    if (reported.has(scope) || !isTrouble) return;
    reported.add(scope);
    const subject = isOfBatch ? 'some usage events' : 'usage events';
    report({ code, message: `${subject} cannot be sent and will be retried: ${errorMessage(cause)}`, cause });
  }

  function resend(batch: Batch): void {
    ready.push(batch);
    changed();
  }

  function waitAlone(batch: Batch, milliseconds: number): void {
    rejectedBatches.add(batch);
    alone += 1;
    const end = () => {
      alone -= 1;
      resend(batch);
    };
    delay(milliseconds, undefined, { signal: stopped.signal }).then(end, () => undefined);
  }

  /** Splits a batch in two. If one part would be empty, returns the batch itself as the only element. */
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

  /** Pauses all sending with exponential back-off, for at least the requested time. A success resets the back-off. */
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

  /**
   * Settles a batch that the collector has processed: counts its events as sent or rejected, and forgets them. Only the events that the key
   * is not allowed to send are kept and wait, because the key may be replaced. If the collector has never accepted any event, the key
   * itself is probably wrong, and all batches wait.
   */
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
    keepBack(part, new NotAcceptedError(403, message, !isKeyWrong));
  }

  /** @param sent all events of the request: the batch, and events that are kept for later. The indexes of `rejectedEvents` refer to it. */
  function settle(batch: Batch, rejectedEvents: readonly RejectedEvent[], sent = batch.texts): void {
    // A success resets the back-off but does not end the current pause, because the collector may have requested that pause.
    pauses = 0;
    reported.delete('everything');
    if (rejectedBatches.has(batch)) reported.delete('batch');
    tally.sent += batch.texts.length - rejectedEvents.length;
    tally.rejected += rejectedEvents.length;
    for (const { index, reason, message } of rejectedEvents) {
      report(rejectedProblem(reason, message, JSON.parse(sent[index] ?? 'null')));
    }
    batches.delete(batch);
    bytes -= batch.bytes;
    backlog.settle(batch);
  }

  function sentUpTo(): number {
    let first = batched;
    for (const batch of batches) first = Math.min(first, batch.first);
    return first;
  }

  void run();
  return {
    /** Called after an event was added. Does not send synchronously, so that `record` returns fast. */
    added: () => {
      timer ??= setTimeout(sendAll, limits.batchMs);
      if (fillsBatch()) changed();
    },
    /** Sends all events added so far. @returns whether all of these events were sent before the timeout */
    flush: async (timeoutMs: number) => {
      const target = backlog.added;
      const timeout = AbortSignal.timeout(Math.ceil(Math.max(0, Math.min(timeoutMs, MAX_TIMER_MS))));
      sendAll();
      const change = () => once(state, 'change', { signal: timeout }).catch(() => undefined);
      while (sentUpTo() < target && !timeout.aborted && !stopped.signal.aborted) await change();
      return sentUpTo() >= target;
    },
    stop: () => {
      for (const each of [timer, pause]) clearTimeout(each);
      stopped.abort();
      collector.close();
      changed();
    },
  };
}

/** How to treat errors without a complete response: the collector or the network is down. */
const AWAY = { code: 'unreachable', isOfBatch: false, isTrouble: true, pauseMs: 0 } as const;

function textBytes(texts: readonly string[]): number {
  return texts.reduce((sum, text) => sum + Buffer.byteLength(text), 0);
}
