/**
 * Takes events from the backlog in batches and sends each until it has succeeded, several at once. What is sent never changes, so
 * however often it is sent, the same ids count once.
 *
 * A batch is divided by lane: where each account has its own key, one may be refused. Its events then wait aside, up to a limit,
 * and those of others are sent.
 */
import type { Backlog, Batch } from './backlog.js';
import type { Tally } from './counters.js';
import { NotTaken, wordsOf } from './errors.js';
import { type Gate, newGate, type Parcel } from './gate.js';
import { LONGEST_MS } from './options.js';
import { type Report, refusal } from './problem.js';
import { newSignal } from './signal.js';
import type { Refusal, Transport } from './transport.js';

/** While nobody answers, and while the events of an account are not taken. */
const LONGEST_AWAY_MS = 2_000;
const LONGEST_HELD_MS = 60_000;
/** That a busy service asks for a shorter pause is not reported. */
const TROUBLE_FROM_MS = 5_000;

export interface SenderLimits {
  readonly batchEvents: number;
  readonly batchBytes: number;
  readonly batchMs: number;
  readonly inFlight: number;
  /** With more on its way or held back, nothing more is taken. */
  readonly memoryBytes: number;
}

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

/** Begins with what was found in the spool. */
export function startSender(
  backlog: Backlog,
  transport: Transport,
  limits: SenderLimits,
  tally: Tally,
  report: Report,
): Sender {
  /** Those that are taken and not settled, oldest first. */
  const parcels = new Set<Parcel>();
  /** Those of them that can be sent at once. */
  const ready: Parcel[] = [];
  /** Closed while nobody answers. */
  const door = newGate(LONGEST_AWAY_MS, resume);
  /** Of the lanes whose events are not taken. */
  const lanes = new Map<string, Gate>();
  const news = newSignal();
  let sending = 0;
  /** Of all parcels. */
  let bytes = 0;
  /** The number of the first event that is in no parcel yet; the backlog counts it as taken a little earlier. */
  let divided = 0;
  /** Events with a lower number are to be sent now, in batches of any size. */
  let due = backlog.added;
  let timer: NodeJS.Timeout | undefined;
  let waking: NodeJS.Immediate | undefined;
  let isStopped = false;

  function fillsBatch(): boolean {
    return backlog.added - backlog.taken >= limits.batchEvents || backlog.waitingBytes >= limits.batchBytes;
  }

  function mayTake(): boolean {
    return bytes < limits.memoryBytes && (backlog.taken < due || fillsBatch());
  }

  function sendAll(): void {
    clearTimeout(timer);
    timer = undefined;
    due = backlog.added;
    news.notify();
  }

  async function run(): Promise<void> {
    while (!isStopped) {
      // Asked for before looking, so that nothing is missed that happens meanwhile.
      const change = news.wait();
      while (!isStopped && !door.isClosed() && sending < limits.inFlight) {
        const parcel = ready.shift();
        const gate = parcel && lanes.get(parcel.lane);
        if (parcel && gate?.isClosed()) gate.hold(parcel);
        else if (parcel) void deliver(parcel);
        else if (!mayTake() || !(await take())) break;
      }
      await change;
    }
  }

  /** Takes the next batch. @returns false when there is none */
  async function take(): Promise<boolean> {
    const batch = await backlog.take(limits);
    for (const parcel of batch ? divide(batch) : []) {
      parcels.add(parcel);
      bytes += parcel.bytes;
      ready.push(parcel);
    }
    divided = backlog.taken;
    // A flush looks again: unreadable events count as sent.
    news.notify();
    return batch !== undefined;
  }

  function divide(batch: Batch): Iterable<Parcel> {
    const parts = new Map<string, Parcel & { texts: string[]; bytes: number }>();
    for (const text of batch.texts) {
      const lane = transport.laneOf(text);
      const part = parts.get(lane) ?? { ...batch, lane, texts: [], bytes: 0, isTried: false };
      part.texts.push(text);
      part.bytes += Buffer.byteLength(text);
      parts.set(lane, part);
    }
    return parts.values();
  }

  async function deliver(parcel: Parcel): Promise<void> {
    sending += 1;
    if (parcel.isTried) tally.retried += parcel.texts.length;
    parcel.isTried = true;
    try {
      const refusals = await transport.send(parcel.texts, parcel.lane);
      // After the stop another process may have the spool.
      if (!isStopped) settle(parcel, refusals);
    } catch (error) {
      if (!isStopped) keepBack(parcel, error);
    }
    sending -= 1;
    news.notify();
  }

  function keepBack(parcel: Parcel, cause: unknown): void {
    const isAnswer = cause instanceof NotTaken;
    const isHeld = isAnswer && !cause.isAway;
    const gate = isHeld ? gateOf(parcel.lane) : door;
    const pauseMs = gate.hold(parcel, isAnswer ? cause.pauseMs : 0);
    if (gate.isReported || (isHeld && pauseMs < TROUBLE_FROM_MS)) return;
    gate.isReported = true;
    const whose = isHeld ? ` of the account ${parcel.lane}` : '';
    const message = `usage events${whose} cannot be sent, and wait: ${wordsOf(cause)}`;
    report({ code: isHeld ? 'held' : 'unreachable', message, cause });
  }

  function gateOf(lane: string): Gate {
    const gate = lanes.get(lane) ?? newGate(LONGEST_HELD_MS, resume);
    lanes.set(lane, gate);
    return gate;
  }

  function resume(released: readonly Parcel[]): void {
    for (const parcel of released) ready.push(parcel);
    news.notify();
  }

  function settle(parcel: Parcel, refusals: readonly Refusal[]): void {
    const gate = lanes.get(parcel.lane);
    door.reset();
    gate?.reset();
    if (!gate?.isClosed()) lanes.delete(parcel.lane);
    tally.sent += parcel.texts.length - refusals.length;
    tally.refused += refusals.length;
    for (const { index, reason, message } of refusals) {
      report(refusal(reason, message, JSON.parse(parcel.texts[index] ?? 'null')));
    }
    parcels.delete(parcel);
    bytes -= parcel.bytes;
    backlog.settle(parcel);
  }

  /** The number of an event before which all are sent. */
  function sentUpTo(): number {
    const [oldest] = parcels;
    return oldest?.first ?? divided;
  }

  void run();
  return {
    added: () => {
      timer ??= setTimeout(sendAll, limits.batchMs);
      if (waking || !fillsBatch()) return;
      waking = setImmediate(() => {
        waking = undefined;
        news.notify();
      });
    },
    flush: async (timeoutMs) => {
      const target = backlog.added;
      let isLate = false;
      const late = setTimeout(
        () => {
          isLate = true;
          news.notify();
        },
        Math.min(timeoutMs, LONGEST_MS),
      );
      sendAll();
      while (sentUpTo() < target && !isLate && !isStopped) await news.wait();
      clearTimeout(late);
      return sentUpTo() >= target;
    },
    changed: news.wait,
    stop: () => {
      clearTimeout(timer);
      isStopped = true;
      for (const gate of [door, ...lanes.values()]) gate.stop();
      transport.close();
      news.notify();
    },
  };
}
