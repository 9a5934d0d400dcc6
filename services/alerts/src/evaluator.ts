/**
 * Finds the thresholds that were crossed. Alerts that ask the same (the same measure, period and filters) are one statement over all their
 * accounts, the one that answers the metrics; each threshold that was crossed is marked as fired together with its webhook, once.
 */
import {
  compareDecimals,
  type DecimalText,
  decimalText,
  ENTRY_FIELD,
  type EpochMs,
  GROUP_BY_DIMENSIONS,
  multiplyDecimals,
  type Window,
  ZERO,
} from '@meterline/catalog';
import { type AlertStore, MAX_MARKS } from '@meterline/service/alerts';
import { type Alert, periodAt, webhookPayload } from '@meterline/service/alerts/alert';
import { Outage, onceAMinute } from '@meterline/service/log';
import {
  ClickHouseError,
  type DimensionValues,
  inParts,
  isStatementLimit,
  listedBytes,
  MAX_LIST_BYTES,
  type ReadRollupState,
  readMetrics,
  type Warehouse,
} from '@meterline/warehouse';
import type { Logger } from 'pino';
import type { AlertMetrics } from './metrics.js';

export interface EvaluatorOptions {
  readonly alerts: Pick<AlertStore, 'all' | 'firedOf' | 'fire'>;
  readonly warehouse: Warehouse;
  readonly readRollupState: ReadRollupState;
  readonly metrics: AlertMetrics;
  readonly log: Logger;
}

/** Alerts that are answered together, each with its thresholds that have not fired yet. */
interface Query {
  readonly window: Window;
  readonly alert: Alert;
  readonly open: OpenAlert[];
}

interface OpenAlert {
  readonly alert: Alert;
  readonly thresholds: readonly number[];
}

interface Turn {
  readonly now: Date;
  /** How long the statements of each account have taken. */
  readonly usedMs: Map<string, number>;
  /** IDs of alerts with a period that was not judged. */
  readonly notJudged: Set<string>;
  /** How many statements ClickHouse has rejected. */
  rejected: number;
  hasFailed: boolean;
}

/** The most accounts of one statement. */
const ACCOUNTS_AT_ONCE = 1_000;
/** What one account's statements may take of a turn; what is left is for later turns, so that costly alerts hold up those of nobody else. */
const ACCOUNT_TURN_MS = 3_000;
/** What all alerts that are judged alone may together take of a turn. */
const ALONE_TURN_MS = 10_000;
/** The most rejected statements of a turn. Then no more are divided: a ClickHouse that rejects everything gets no statement per alert. */
const MAX_REJECTED = 100;

const REDIS =
  'thresholds cannot be evaluated or marked as crossed: Redis rejects a command, or a stored mark is corrupt';
const TOO_LARGE = 'an alert is about more usage than a statement may read, and cannot be judged; narrow its filters';
const REJECTED = 'ClickHouse rejects the statement of an alert, which is not judged until ClickHouse accepts it';
const NOT_FIRED = {
  changed: 'an alert was changed or deleted while it was judged, and does not fire; the next turn judges it again',
  full: `an alert does not fire any more: it has fired ${MAX_MARKS} times in 70 days; create another in its place`,
};

export class Evaluator {
  readonly #options: EvaluatorOptions;
  readonly #outage: Outage;
  readonly #logRedis: (err: unknown) => void;
  readonly #logTooLarge: (facts: object) => void;
  readonly #logRejected: (facts: object) => void;
  readonly #logNotFired: (facts: object, reason: string) => void;
  /** Alerts, and periods of them, whose statement ClickHouse rejects: see {@link aloneKey}. They are judged alone, after all others. */
  readonly #alone = new Set<string>();
  /** Undefined until this process has judged all alerts once: one process at a time does. */
  lastTurn: { readonly endedAt: string; readonly notJudged: number } | undefined;

  constructor(options: EvaluatorOptions) {
    const { log } = options;
    this.#options = options;
    this.#outage = new Outage(log, 'ClickHouse', 'thresholds are not judged until it does, and then all of them');
    this.#logRedis = onceAMinute((err: unknown) => log.error({ event: 'evaluation_queue_error', err }, REDIS));
    this.#logTooLarge = onceAMinute((facts: object) => log.warn({ event: 'alert_too_large', ...facts }, TOO_LARGE));
    this.#logRejected = onceAMinute((facts: object) => log.error({ event: 'alert_rejected', ...facts }, REJECTED));
    this.#logNotFired = onceAMinute((facts: object, reason: string) =>
      log.warn({ event: 'threshold_not_fired', ...facts }, reason),
    );
  }

  /** Judges all alerts. What fails is judged again at the next turn, and holds up nothing else. */
  async turn(now: Date): Promise<void> {
    const { alerts, metrics } = this.#options;
    const end = metrics.turns.startTimer();
    const queries = new Map<string, Query>();
    const turn: Turn = { now, usedMs: new Map(), notJudged: new Set(), rejected: 0, hasFailed: false };
    for await (const slice of alerts.all()) {
      const ask = (alert: Alert) => this.#ask(queries, alert, now.getTime()).catch(this.#refused(alert, turn));
      await Promise.all(slice.map(ask));
    }
    // In another order each time: what had no time left comes first in a later turn.
    const inTurn = shuffled([...queries.values()]);
    const alone = inTurn.filter(({ alert, window }) => this.#alone.has(aloneKey(alert, window)));
    // Drops the keys of deleted alerts and of past periods.
    this.#alone.clear();
    for (const { alert, window } of alone) this.#alone.add(aloneKey(alert, window));
    const sizeOf = ({ alert }: OpenAlert) => Math.max(listedBytes(alert.account), MAX_LIST_BYTES / ACCOUNTS_AT_ONCE);
    for (const query of inTurn.filter((each) => !alone.includes(each))) {
      for (const open of inParts(query.open, sizeOf)) await this.#judgeInTurn({ ...query, open: [...open] }, turn);
    }
    const aloneUntil = performance.now() + ALONE_TURN_MS;
    for (const query of alone) {
      if (performance.now() < aloneUntil) await this.#judgeInTurn(query, turn, true);
      else turn.notJudged.add(query.alert.id);
    }
    if (!turn.hasFailed) this.#outage.recovered();
    this.lastTurn = { endedAt: new Date().toISOString(), notJudged: turn.notJudged.size };
    end();
  }

  /**
   * Leaves out accounts whose share of the turn is used up. Alerts whose statement ClickHouse rejects are halved until the alert at fault
   * is found.
   * @param isSuspect whether a statement with these alerts was rejected
   */
  async #judgeInTurn(query: Query, turn: Turn, isSuspect = false): Promise<void> {
    const { usedMs, notJudged } = turn;
    const hasTime = ({ alert }: OpenAlert) => (usedMs.get(alert.account) ?? 0) < ACCOUNT_TURN_MS;
    const open = query.open.filter(hasTime);
    for (const one of query.open) if (!hasTime(one)) notJudged.add(one.alert.id);
    const [first] = open;
    if (!first) return;
    const began = performance.now();
    const error = await this.#judge({ ...query, open }, turn).catch((cause: unknown) => cause);
    const isRejected = error instanceof ClickHouseError;
    if (isRejected) turn.rejected += 1;
    const isHalved = isRejected && open.length > 1 && turn.rejected <= MAX_REJECTED;
    // Nobody is charged for a query that is halved: most alerts are not at fault, and would be left out before it is found who is.
    const shareMs = isHalved ? 0 : (performance.now() - began) / open.length;
    for (const { alert } of open) usedMs.set(alert.account, (usedMs.get(alert.account) ?? 0) + shareMs);
    if (isHalved) {
      const half = Math.ceil(open.length / 2);
      await this.#judgeInTurn({ ...query, open: open.slice(0, half) }, turn, true);
      await this.#judgeInTurn({ ...query, open: open.slice(half) }, turn, true);
      return;
    }
    const key = aloneKey(first.alert, query.window);
    if (error === undefined) {
      if (open.length === 1) this.#alone.delete(key);
      return;
    }
    for (const { alert } of open) notJudged.add(alert.id);
    this.#options.metrics.failures.inc(open.length);
    // If an alert is rejected that shared no statement with others, the server is at fault.
    if (isRejected && open.length === 1 && (isSuspect || isStatementLimit(error))) {
      this.#alone.add(key);
      const facts = { account: first.alert.account, alert: first.alert.id };
      if (isStatementLimit(error)) this.#logTooLarge(facts);
      else this.#logRejected({ ...facts, err: error });
    } else {
      turn.hasFailed = true;
      this.#outage.failed(error);
    }
  }

  /** The current period and the one before it: an event of its last minute may come after it. */
  async #ask(queries: Map<string, Query>, alert: Alert, now: EpochMs): Promise<void> {
    const current = periodAt(alert.period, now);
    for (const window of [current, periodAt(alert.period, current.startTime - 1)]) {
      const known = new Set((await this.#options.alerts.firedOf(alert, window.startTime)).map((one) => one.threshold));
      const thresholds = alert.thresholds
        .filter(({ percent, since }) => !known.has(percent) && Date.parse(since) < window.endTime)
        .map(({ percent }) => percent);
      if (thresholds.length === 0) continue;
      const alone = this.#alone.has(aloneKey(alert, window)) ? alert.id : '';
      const key = JSON.stringify([alert.measure, window.startTime, window.endTime, alert.filters, alone]);
      const query = queries.get(key) ?? { window, alert, open: [] };
      query.open.push({ alert, thresholds });
      queries.set(key, query);
    }
  }

  async #judge({ window, alert: { measure, filters }, open }: Query, turn: Turn): Promise<void> {
    const { warehouse, readRollupState } = this.#options;
    const accounts = [...new Set(open.map(({ alert }) => alert.account))];
    // Any resolution but hours will do: whole days may answer then. These months are never dropped.
    const { groups } = await readMetrics(warehouse, {
      ...{ accounts, window, filters: dimensionsOf(filters), groupBy: ['account'], resolution: 'monthly' },
      rollups: await readRollupState({ accounts, warehouse }, window),
      limit: accounts.length,
    });
    const found = new Map(groups.map((group) => [group.values.account, group[measure]]));
    for (const { alert, thresholds } of open) {
      const value = found.get(alert.account) ?? ZERO;
      for (const threshold of thresholds) {
        // What Redis refuses is found again at the next turn.
        if (isCrossed(value, alert, threshold)) {
          await this.#fire(alert, window, threshold, value, turn.now).catch(this.#refused(alert, turn));
        }
      }
    }
  }

  #refused({ id }: Alert, { notJudged }: Turn): (error: unknown) => void {
    return (error) => {
      notJudged.add(id);
      this.#options.metrics.failures.inc();
      this.#logRedis(error);
    };
  }

  async #fire(alert: Alert, window: Window, threshold: number, value: DecimalText, now: Date): Promise<void> {
    const { alerts, metrics, log } = this.#options;
    const fired = { threshold, value, firedAt: now.toISOString() };
    const payload = webhookPayload(alert, 'usage.threshold_reached', window, now.getTime(), fired);
    const outcome = await alerts.fire(alert, window.startTime, fired, payload);
    const facts = { account: alert.account, alert: alert.id, threshold };
    if (outcome === 'changed' || outcome === 'full') this.#logNotFired(facts, NOT_FIRED[outcome]);
    if (outcome !== 'fired') return;
    metrics.crossings.inc();
    log.info({ event: 'threshold_reached', ...facts }, 'a threshold is crossed');
  }
}

/** The key of an alert in a period: the last month may be large and this one not yet. */
function aloneKey({ id }: Alert, { startTime }: Window): string {
  return `${id} ${startTime}`;
}

function shuffled<T>(list: readonly T[]): T[] {
  return list
    .map((item) => ({ item, place: Math.random() }))
    .sort((a, b) => a.place - b.place)
    .map(({ item }) => item);
}

/** value ≥ amount × threshold ÷ 100, without dividing. */
function isCrossed(value: DecimalText, { amount }: Alert, threshold: number): boolean {
  const wanted = multiplyDecimals(decimalText(amount), decimalText(String(threshold)));
  return compareDecimals(multiplyDecimals(value, decimalText('100')), wanted) >= 0;
}

function dimensionsOf(filters: Alert['filters']): DimensionValues {
  const named = GROUP_BY_DIMENSIONS.map((dimension) => [dimension, filters[ENTRY_FIELD[dimension]]] as const);
  return Object.fromEntries(named.filter(([, values]) => values !== undefined));
}
