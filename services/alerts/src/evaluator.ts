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
import type { AlertStore } from '@meterline/service/alerts';
import { type Alert, periodAt, webhookPayload } from '@meterline/service/alerts/alert';
import { Outage, onceAMinute } from '@meterline/service/log';
import {
  type DimensionValues,
  isStatementLimit,
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
  readonly open: { readonly alert: Alert; readonly thresholds: readonly number[] }[];
}

interface Turn {
  readonly now: Date;
  /** How long the statements of each account have taken. */
  readonly usedMs: Map<string, number>;
  hasFailed: boolean;
}

/** The most accounts of one statement. */
const ACCOUNTS_AT_ONCE = 1_000;
/** What one account's statements may take of a turn; what is left is for later turns, so that costly alerts hold up those of nobody else. */
const ACCOUNT_TURN_MS = 3_000;
/** What all alerts that reach the limit of a statement may together take of a turn. */
const LARGE_TURN_MS = 10_000;

export class Evaluator {
  readonly #options: EvaluatorOptions;
  readonly #outage: Outage;
  readonly #logTooLarge: (facts: object) => void;
  /** Alerts, and periods of them, about more usage than a statement may read: see {@link largeKey}. They are judged alone, after all others. */
  readonly #large = new Set<string>();
  readonly #redisRefuses: (err: unknown) => void;

  constructor(options: EvaluatorOptions) {
    this.#options = options;
    this.#outage = new Outage(
      options.log,
      'ClickHouse',
      'thresholds are not judged until it does, and then all of them',
    );
    this.#redisRefuses = onceAMinute((err: unknown) => {
      const message =
        'thresholds cannot be judged, or cannot be noted as crossed: Redis refuses, or has what nobody can read';
      options.log.error({ event: 'evaluation_queue_error', err }, message);
    });
    this.#logTooLarge = onceAMinute((facts: object) => {
      const message =
        'an alert is about more usage than a statement may read, and cannot be judged; narrow its filters';
      options.log.warn({ event: 'alert_too_large', ...facts }, message);
    });
  }

  /** Judges all alerts. What fails is judged again at the next turn, and holds up nothing else. */
  async turn(now: Date): Promise<void> {
    const { alerts, metrics } = this.#options;
    const end = metrics.turns.startTimer();
    const queries = new Map<string, Query>();
    for await (const slice of alerts.all()) {
      const refused = (error: unknown) => this.#refused(error);
      await Promise.all(slice.map((alert) => this.#ask(queries, alert, now.getTime()).catch(refused)));
    }
    const turn: Turn = { now, usedMs: new Map(), hasFailed: false };
    // In another order each time: what had no time left comes first in a later turn.
    const inTurn = shuffled([...queries.values()]);
    const large = inTurn.filter(({ alert, window }) => this.#large.has(largeKey(alert, window)));
    for (const query of inTurn.filter((each) => !large.includes(each))) {
      for (let start = 0; start < query.open.length; start += ACCOUNTS_AT_ONCE) {
        await this.#judgeInTurn({ ...query, open: query.open.slice(start, start + ACCOUNTS_AT_ONCE) }, turn);
      }
    }
    const largeUntil = performance.now() + LARGE_TURN_MS;
    for (const query of large) {
      if (performance.now() < largeUntil) await this.#judgeInTurn(query, turn);
    }
    if (!turn.hasFailed) this.#outage.recovered();
    end();
  }

  /** Leaves out whose share of the turn is used up. Alerts that are too much for one statement are halved, until it is found which. */
  async #judgeInTurn(query: Query, turn: Turn): Promise<void> {
    const { usedMs } = turn;
    const open = query.open.filter(({ alert }) => (usedMs.get(alert.account) ?? 0) < ACCOUNT_TURN_MS);
    const [first] = open;
    if (!first) return;
    const began = performance.now();
    const error = await this.#judge({ ...query, open }, turn.now).catch((cause: unknown) => cause);
    const isHalved = isStatementLimit(error) && open.length > 1;
    // Nobody is charged for a query that is halved: most alerts are not at fault, and would be left out before it is found who is.
    const shareMs = isHalved ? 0 : (performance.now() - began) / open.length;
    for (const { alert } of open) usedMs.set(alert.account, (usedMs.get(alert.account) ?? 0) + shareMs);
    if (isHalved) {
      const half = Math.ceil(open.length / 2);
      await this.#judgeInTurn({ ...query, open: open.slice(0, half) }, turn);
      await this.#judgeInTurn({ ...query, open: open.slice(half) }, turn);
    } else if (isStatementLimit(error)) {
      this.#large.add(largeKey(first.alert, query.window));
      this.#options.metrics.failures.inc();
      this.#logTooLarge({ account: first.alert.account, alert: first.alert.id });
    } else if (error !== undefined) {
      turn.hasFailed = true;
      this.#options.metrics.failures.inc(open.length);
      this.#outage.failed(error);
    } else if (open.length === 1) {
      this.#large.delete(largeKey(first.alert, query.window));
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
      const alone = this.#large.has(largeKey(alert, window)) ? alert.id : '';
      const key = JSON.stringify([alert.measure, window.startTime, window.endTime, alert.filters, alone]);
      const query = queries.get(key) ?? { window, alert, open: [] };
      query.open.push({ alert, thresholds });
      queries.set(key, query);
    }
  }

  async #judge({ window, alert: { measure, filters }, open }: Query, now: Date): Promise<void> {
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
          await this.#fire(alert, window, threshold, value, now).catch((error: unknown) => this.#refused(error));
        }
      }
    }
  }

  #refused(error: unknown): void {
    this.#options.metrics.failures.inc();
    this.#redisRefuses(error);
  }

  async #fire(alert: Alert, window: Window, threshold: number, value: DecimalText, now: Date): Promise<void> {
    const { alerts, metrics, log } = this.#options;
    const fired = { threshold, value, firedAt: now.toISOString() };
    const payload = webhookPayload(alert, 'usage.threshold_reached', window, now.getTime(), fired);
    if (!(await alerts.fire(alert, window.startTime, fired, payload))) return;
    metrics.crossings.inc();
    log.info(
      { event: 'threshold_reached', account: alert.account, alert: alert.id, threshold },
      'a threshold is crossed',
    );
  }
}

/** The key of an alert in a period: the last month may be large and this one not yet. */
function largeKey({ id }: Alert, { startTime }: Window): string {
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
