/**
 * Takes events from the backlog in batches and sends each until it has succeeded, several at once. What is sent never changes, so
 * however often it is sent, the same ids count once.
 *
 * A batch is divided by account: each has its own key, and one may not be taken. Its events then wait aside, up to a limit, and
 * those of others are sent; so does a batch that is not taken for what is in it.
 */
import { backOffMs, type RejectedEvent } from '@meterline/catalog/plain';
import type { Backlog, Batch } from './backlog.js';
import { accountOf, type Collector, NotTaken } from './collector.js';
import { type CheckedOptions, LONGEST_MS } from './options.js';
import type { Tally } from './problems.js';
import { errorMessage, type Report, rejectedProblem } from './problems.js';

/** Requests that are on their way at once. */
const MOST_REQUESTS = 4;
/** The most JSON of a request, unless a single event has more. */
const BATCH_BYTES = 1024 * 1024;
const PAUSE = { firstMs: 50, longestMs: 5_000 };

export interface Sender {
  /** An event was added. Nothing is sent before the caller is done: `record` has no time for it. */
  added(): void;
  /** Sends what there is now. @returns whether all of it was sent within the time */
  flush(timeoutMs: number): Promise<boolean>;
  /** Resolves when there may be more room than now, and at the stop. */
  changed(): Promise<void>;
  /** Breaks off what is being sent. */
  stop(): void;
}

/** The events of a batch that are of one account. */
interface AccountBatch extends Batch {
  readonly account: string;
  isTried: boolean;
  /** Whether it was not taken because of what is in it. */
  isRefused: boolean;
}

/** Begins with what was found in the spool. */
export function startSender(
  backlog: Backlog,
  collector: Collector,
  limits: Pick<CheckedOptions, 'batchEvents' | 'batchMs' | 'memoryBytes'>,
  tally: Tally,
  report: Report,
): Sender {
  const batchLimits = { batchEvents: limits.batchEvents, batchBytes: BATCH_BYTES };
  /** Batches that are taken and not settled, oldest first. */
  const batches = new Set<AccountBatch>();
  /** Taken batches that can be sent at once. */
  const ready: AccountBatch[] = [];
  /** Holds everything while nobody answers. */
  const outage = newBackOff(resume);
  /** The back-offs of accounts whose events are not taken, and of accounts of which single batches are not. */
  const accounts = new Map<string, BackOff>();
  const refusals = new Map<string, BackOff>();
  const change = newSignal();
  let requests = 0;
  /** The bytes of all batches that are taken and not settled. */
  let bytes = 0;
  /** The number of the first event that is in no batch yet; the backlog counts it as taken a little earlier. */
  let divided = 0;
  /** Events with a lower number are to be sent now, in batches of any size. */
  let due = backlog.added;
  let timer: NodeJS.Timeout | undefined;
  let waking: NodeJS.Immediate | undefined;
  let isStopped = false;

  function fillsBatch(): boolean {
    return backlog.added - backlog.taken >= batchLimits.batchEvents || backlog.waitingBytes >= BATCH_BYTES;
  }

  function mayTake(): boolean {
    return bytes < limits.memoryBytes && (backlog.taken < due || fillsBatch());
  }

  function sendAll(): void {
    clearTimeout(timer);
    timer = undefined;
    due = backlog.added;
    change.notify();
  }

  async function run(): Promise<void> {
    while (!isStopped) {
      // Asked for before looking, so that nothing is missed that happens meanwhile.
      const changed = change.wait();
      while (!isStopped && !outage.isWaiting() && requests < MOST_REQUESTS) {
        const batch = ready.shift();
        const pause = batch && backOffsOf(batch).find((backOff) => backOff.isWaiting());
        if (batch && pause) pause.hold(batch, 0);
        else if (batch) void deliver(batch);
        else if (!mayTake() || !(await take())) break;
      }
      await changed;
    }
  }

  /** Takes the next batch. @returns false when there is none */
  async function take(): Promise<boolean> {
    const batch = await backlog.take(batchLimits);
    for (const part of batch ? divide(batch) : []) {
      batches.add(part);
      bytes += part.bytes;
      ready.push(part);
    }
    divided = backlog.taken;
    // A flush looks again: unreadable events count as sent.
    change.notify();
    return batch !== undefined;
  }

  function divide(batch: Batch): Iterable<AccountBatch> {
    const parts = new Map<string, AccountBatch & { texts: string[]; bytes: number }>();
    for (const text of batch.texts) {
      const account = accountOf(text);
      const part = parts.get(account) ?? { ...batch, account, texts: [], bytes: 0, isTried: false, isRefused: false };
      part.texts.push(text);
      part.bytes += Buffer.byteLength(text);
      parts.set(account, part);
    }
    return parts.values();
  }

  async function deliver(batch: AccountBatch): Promise<void> {
    requests += 1;
    if (batch.isTried) tally.retried += batch.texts.length;
    batch.isTried = true;
    try {
      const rejectedEvents = await collector.send(batch.texts, batch.account);
      // After the stop another process may have the spool.
      if (!isStopped) settle(batch, rejectedEvents);
    } catch (error) {
      if (!isStopped) keepBack(batch, error);
    }
    requests -= 1;
    change.notify();
  }

  function keepBack(batch: AccountBatch, cause: unknown): void {
    const response = cause instanceof NotTaken ? cause : undefined;
    const isHeld = response !== undefined && response.whose !== 'everybody';
    batch.isRefused ||= response?.whose === 'batch';
    const backOff = isHeld ? backOffOf(response.whose === 'batch' ? refusals : accounts, batch.account) : outage;
    backOff.hold(batch, response?.pauseMs ?? 0);
    if (backOff.isReported || response?.isTrouble === false) return;
    backOff.isReported = true;
    const whose = isHeld ? ` of the account ${batch.account}` : '';
    const message = `${response?.whose === 'batch' ? 'some ' : ''}usage events${whose} cannot be sent, and wait: ${errorMessage(cause)}`;
    report({ code: isHeld ? 'held' : 'unreachable', message, cause });
  }

  function backOffOf(backOffs: Map<string, BackOff>, account: string): BackOff {
    const backOff = backOffs.get(account) ?? newBackOff(resume);
    backOffs.set(account, backOff);
    return backOff;
  }

  function backOffsOf({ account, isRefused }: AccountBatch): BackOff[] {
    return [accounts.get(account), isRefused ? refusals.get(account) : undefined].filter((each) => each !== undefined);
  }

  function resume(released: readonly AccountBatch[]): void {
    for (const batch of released) ready.push(batch);
    change.notify();
  }

  function settle(batch: AccountBatch, rejectedEvents: readonly RejectedEvent[]): void {
    outage.reset();
    for (const backOffs of batch.isRefused ? [accounts, refusals] : [accounts]) {
      const backOff = backOffs.get(batch.account);
      backOff?.reset();
      if (!backOff?.isWaiting()) backOffs.delete(batch.account);
    }
    tally.sent += batch.texts.length - rejectedEvents.length;
    tally.rejected += rejectedEvents.length;
    for (const { index, reason, message } of rejectedEvents) {
      report(rejectedProblem(reason, message, JSON.parse(batch.texts[index] ?? 'null')));
    }
    batches.delete(batch);
    bytes -= batch.bytes;
    backlog.settle(batch);
  }

  /** The number of an event before which all are sent. */
  function sentUpTo(): number {
    const [oldest] = batches;
    return oldest?.first ?? divided;
  }

  void run();
  return {
    added: () => {
      timer ??= setTimeout(sendAll, limits.batchMs);
      if (waking || !fillsBatch()) return;
      waking = setImmediate(() => {
        waking = undefined;
        change.notify();
      });
    },
    flush: async (timeoutMs) => {
      const target = backlog.added;
      let isLate = false;
      const late = setTimeout(
        () => {
          isLate = true;
          change.notify();
        },
        Math.min(timeoutMs, LONGEST_MS),
      );
      sendAll();
      while (sentUpTo() < target && !isLate && !isStopped) await change.wait();
      clearTimeout(late);
      return sentUpTo() >= target;
    },
    changed: change.wait,
    stop: () => {
      clearTimeout(timer);
      isStopped = true;
      for (const backOff of [outage, ...accounts.values(), ...refusals.values()]) backOff.stop();
      collector.close();
      change.notify();
    },
  };
}

/** Wakes those that wait for something to change. It holds no value: they look again. */
function newSignal(): { wait(): Promise<void>; notify(): void } {
  const waiting: (() => void)[] = [];
  return {
    wait: () => new Promise((resolve) => waiting.push(resolve)),
    notify: () => {
      for (const wake of waiting.splice(0)) wake();
    },
  };
}

/**
 * Holds batches back while they are not taken: all of them while nobody answers, or those of one account. It opens by itself after a
 * pause, which doubles each time until something is taken.
 */
interface BackOff {
  /** Whether the program was told why it waits. */
  isReported: boolean;
  isWaiting(): boolean;
  /**
   * Keeps a batch until the end of the pause, and begins one if there is none.
   * @param atLeastMs so long it lasts from now on
   */
  hold(batch: AccountBatch, atLeastMs: number): void;
  /** Something was taken. A pause lasts for its time all the same: it may have been asked for. */
  reset(): void;
  stop(): void;
}

/** @param release is given what was held at the end of the pause */
function newBackOff(release: (held: readonly AccountBatch[]) => void): BackOff {
  const held: AccountBatch[] = [];
  /** Pauses since something was taken. */
  let pauses = 0;
  let timer: NodeJS.Timeout | undefined;
  /** When the pause ends, by performance.now(). */
  let endsAt = 0;

  function end(): void {
    timer = undefined;
    release(held.splice(0));
  }

  return {
    isReported: false,
    isWaiting: () => timer !== undefined,
    hold: (batch, atLeastMs) => {
      held.push(batch);
      const now = performance.now();
      if (timer && now + atLeastMs <= endsAt) return;
      // The random part keeps producers from coming back all at the moment that they were told.
      const requestedMs = atLeastMs * (1 + Math.random() / 4);
      const lastsMs = timer ? requestedMs : Math.max(requestedMs, backOffMs(pauses++, PAUSE));
      clearTimeout(timer);
      endsAt = now + lastsMs;
      timer = setTimeout(end, lastsMs);
    },
    reset() {
      pauses = 0;
      this.isReported = false;
    },
    stop: () => clearTimeout(timer),
  };
}
