/**
 * Finds crossed thresholds of alerts. Alerts with the same measure, period and filters share one statement over all their accounts. A
 * crossed threshold is marked as fired together with its deliveries, in one Redis script, so it fires only once.
 *
 * Thresholds of the forecast have their own statements, which read the sum of each day. They run once an hour for each alert.
 */
import {
  bucketStart,
  compareDecimals,
  type DecimalText,
  decimalText,
  type EpochMs,
  MS_PER_DAY,
  multiplyDecimals,
  type Window,
  ZERO,
} from '@meterline/catalog';
import { type AlertStore, MAX_MARKS, messageBody } from '@meterline/service/alerts';
import { type Alert, periodAt, webhookPayload } from '@meterline/service/alerts/alert';
import { Outage, onceAMinute } from '@meterline/service/log';
import {
  ClickHouseError,
  inParts,
  isStatementLimit,
  listedBytes,
  MAX_LIST_BYTES,
  type ReadRollupState,
  type Warehouse,
} from '@meterline/warehouse';
import type { Logger } from 'pino';
import { type Figure, type Measured, readFigures } from './figures.js';
import type { AlertMetrics } from './metrics.js';

export interface EvaluatorOptions {
  readonly alerts: Pick<AlertStore, 'all' | 'firedOf' | 'fire'>;
  readonly warehouse: Warehouse;
  readonly readRollupState: ReadRollupState;
  readonly metrics: AlertMetrics;
  readonly log: Logger;
  /** The public address of the page, for links in messages. */
  readonly pageUrl?: string | undefined;
}

/** Alerts that one statement can evaluate, because their measure, filters and period are the same. */
interface Query extends Measured {
  readonly open: OpenAlert[];
}

interface OpenAlert {
  readonly alert: Alert;
  readonly thresholds: readonly number[];
}

interface Run {
  readonly now: Date;
  readonly usedMs: Map<string, number>;
  /** IDs of alerts that this run could not evaluate for the current or for the previous period. */
  readonly skipped: Set<string>;
  /** Queries with one alert each, which run after all other queries. */
  readonly alone: Query[];
  /** Queries of one alert each that ClickHouse rejected. */
  readonly rejected: { readonly query: Query; readonly error: ClickHouseError }[];
  hasSucceeded: boolean;
  hasFailed: boolean;
}

const MAX_ACCOUNTS_PER_STATEMENT = 1_000;
/** Maximum statement time of an account per run. Its remaining alerts wait for a later run, so that they do not delay other accounts. */
const ACCOUNT_MS = 3_000;
/** Maximum time per run for alerts evaluated alone. So if ClickHouse rejects every statement, a run does not send one for each alert. */
const ALONE_MS = 10_000;
/** The forecast is compared with thresholds from the third day of a month on, because the first days say little about a month. */
const FORECAST_AFTER_MS = 2 * MS_PER_DAY;

const REDIS = 'thresholds cannot be evaluated or marked as fired: Redis rejects a command, or a stored mark is corrupt';
const TOO_LARGE = 'an alert covers more usage than one statement may read, and is not evaluated; narrow its filters';
const REJECTED = 'ClickHouse rejects the statement of an alert, which is not evaluated until ClickHouse accepts it';
const NOT_FIRED = {
  changed: 'an alert was changed or deleted during its evaluation, and does not fire; the next run evaluates it again',
  full: `an alert no longer fires: it has fired ${MAX_MARKS} times in 70 days; create a new alert instead`,
};

export class Evaluator {
  readonly #options: EvaluatorOptions;
  readonly #outage: Outage;
  readonly #logRedis: (err: unknown) => void;
  readonly #logTooLarge: (facts: object) => void;
  readonly #logRejected: (facts: object) => void;
  readonly #logNotFired: (facts: object, reason: string) => void;
  /** Keys of alerts whose own statement was rejected. They are evaluated alone, because they would make a shared statement fail. */
  #alone = new Set<string>();
  /** The hour of the last run, and the alerts whose forecast was compared in this hour, each as ID and version. */
  #hour: EpochMs = 0;
  #forecasted = new Set<string>();
  /** Shown on the health page. Undefined until this process has finished a run, because only one process at a time evaluates. */
  lastRun: { readonly endedAt: string; readonly notJudged: number } | undefined;

  constructor(options: EvaluatorOptions) {
    const { log } = options;
    this.#options = options;
    this.#outage = new Outage(log, 'ClickHouse', 'alerts are evaluated when it is back');
    this.#logRedis = onceAMinute((err: unknown) => log.error({ event: 'evaluation_queue_error', err }, REDIS));
    this.#logTooLarge = onceAMinute((facts: object) => log.warn({ event: 'alert_too_large', ...facts }, TOO_LARGE));
    this.#logRejected = onceAMinute((facts: object) => log.error({ event: 'alert_rejected', ...facts }, REJECTED));
    this.#logNotFired = onceAMinute((facts: object, reason: string) =>
      log.warn({ event: 'threshold_not_fired', ...facts }, reason),
    );
  }

  /** Failures are logged and counted, and the next run tries again. */
  async evaluateAll(now: Date): Promise<void> {
    const { metrics } = this.#options;
    const end = metrics.runs.startTimer();
    const hour = bucketStart(now.getTime(), 'hourly');
    if (hour !== this.#hour) this.#forecasted.clear();
    this.#hour = hour;
    const run: Run = {
      now,
      usedMs: new Map(),
      skipped: new Set(),
      alone: [],
      rejected: [],
      hasSucceeded: false,
      hasFailed: false,
    };
    // Each account has limited time in a run, so its last queries may be skipped. Shuffle them, so that the last ones differ each time.
    for (const query of shuffled(await this.#queries(run))) {
      for (const open of inParts(query.open, listedSize)) await this.#evaluate({ ...query, open: [...open] }, run);
    }
    const aloneUntil = performance.now() + ALONE_MS;
    for (const query of shuffled(run.alone)) {
      if (performance.now() < aloneUntil) await this.#evaluate(query, run);
      else skip(query.open, run);
    }
    this.#noteRejections(run);
    if (!run.hasFailed) this.#outage.recovered();
    this.lastRun = { endedAt: new Date().toISOString(), notJudged: run.skipped.size };
    end();
  }

  /** Groups all alerts into queries. Alerts that must be evaluated alone are added to `run.alone` instead. */
  async #queries(run: Run): Promise<Query[]> {
    const queries = new Map<string, Query>();
    for await (const alerts of this.#options.alerts.all()) {
      const add = (alert: Alert) => this.#addQueries(queries, alert, run).catch(this.#onRedisError(alert, run));
      await Promise.all(alerts.map(add));
    }
    // Drop the keys of deleted alerts and of past periods.
    this.#alone = new Set(run.alone.map(aloneKey));
    return [...queries.values()];
  }

  /** Adds queries for the current and the previous period. An event of the previous period may still arrive. */
  async #addQueries(queries: Map<string, Query>, alert: Alert, run: Run): Promise<void> {
    const { measure, filters } = alert;
    const current = periodAt(alert.period, run.now.getTime());
    for (const period of [current, periodAt(alert.period, current.startTime - 1)]) {
      const fired = await this.#options.alerts.firedOf(alert, period.startTime);
      const add = (isForecast: boolean, percents: readonly number[]) => {
        const isFired = (percent: number) =>
          fired.some(({ threshold, forecast }) => threshold === percent && (forecast !== undefined) === isForecast);
        const thresholds = percents.filter((percent) => !isFired(percent));
        if (thresholds.length === 0) return;
        const query = { measure, filters, period, isForecast, open: [{ alert, thresholds }] };
        const key = JSON.stringify([measure, period.startTime, period.endTime, filters, isForecast]);
        if (this.#alone.has(aloneKey(query))) run.alone.push(query);
        else if (!queries.has(key)) queries.set(key, query);
        else queries.get(key)?.open.push(...query.open);
      };
      const applies = alert.thresholds.filter(({ since }) => Date.parse(since) < period.endTime);
      add(
        false,
        applies.map(({ percent }) => percent),
      );
      const isDue = period === current && run.now.getTime() >= period.startTime + FORECAST_AFTER_MS;
      if (isDue && !this.#forecasted.has(versionOf(alert))) add(true, alert.forecast);
    }
  }

  /**
   * Skips the alerts of accounts that have used up their time. If ClickHouse rejects a statement over several alerts, a single alert may be
   * the cause, so each is evaluated alone at the end of the run.
   */
  async #evaluate({ open: all, ...definition }: Query, run: Run): Promise<void> {
    const { usedMs } = run;
    const hasTime = ({ alert }: OpenAlert) => (usedMs.get(alert.account) ?? 0) < ACCOUNT_MS;
    const open = all.filter(hasTime);
    const waiting = all.filter((one) => !hasTime(one));
    skip(waiting, run);
    const query = { ...definition, open };
    if (open.length === 0) return;
    const startedAt = performance.now();
    try {
      await this.#fireCrossed(query, run);
      run.hasSucceeded = true;
      if (open.length === 1) this.#alone.delete(aloneKey(query));
    } catch (error) {
      if (error instanceof ClickHouseError && open.length > 1) {
        run.alone.push(...open.map((one) => ({ ...definition, open: [one] })));
        return;
      }
      skip(open, run);
      this.#options.metrics.failures.inc(open.length);
      if (error instanceof ClickHouseError) {
        run.rejected.push({ query, error });
      } else {
        run.hasFailed = true;
        this.#outage.failed(error);
      }
    }
    const shareMs = (performance.now() - startedAt) / open.length;
    for (const { alert } of open) usedMs.set(alert.account, (usedMs.get(alert.account) ?? 0) + shareMs);
  }

  /** Blames the alert if another statement of the run succeeded, or its own reached a limit. Otherwise ClickHouse rejects everything. */
  #noteRejections(run: Run): void {
    for (const { query, error } of run.rejected) {
      if (run.hasSucceeded || isStatementLimit(error)) {
        this.#alone.add(aloneKey(query));
        for (const { alert } of query.open) this.#logRejection(alert, error);
      } else {
        run.hasFailed = true;
        this.#outage.failed(error);
      }
    }
  }

  #logRejection({ account, id }: Alert, err: ClickHouseError): void {
    if (isStatementLimit(err)) this.#logTooLarge({ account, alert: id });
    else this.#logRejected({ account, alert: id, err });
  }

  async #fireCrossed({ open, ...selection }: Query, run: Run): Promise<void> {
    const { warehouse, readRollupState } = this.#options;
    const accounts = [...new Set(open.map(({ alert }) => alert.account))];
    const figures = await readFigures(warehouse, readRollupState, { accounts, ...selection }, run.now.getTime());
    for (const { alert, thresholds } of open) {
      const figure = figures.get(alert.account) ?? { value: ZERO, judged: ZERO };
      for (const threshold of thresholds.filter((percent) => isCrossed(figure.judged, alert, percent))) {
        await this.#fire(alert, selection.period, threshold, figure, run.now).catch(this.#onRedisError(alert, run));
      }
      if (selection.isForecast && !run.skipped.has(alert.id)) this.#forecasted.add(versionOf(alert));
    }
  }

  async #fire(alert: Alert, period: Window, threshold: number, figure: Figure, now: Date): Promise<void> {
    const { alerts, metrics, log, pageUrl } = this.#options;
    const { value, forecast } = figure;
    const fired = { threshold, value, firedAt: now.toISOString(), forecast };
    const type = forecast === undefined ? 'usage.threshold_reached' : 'usage.forecast_reached';
    const payload = webhookPayload(alert, type, period, now.getTime(), fired);
    const body = messageBody(alert, period, pageUrl, fired);
    const outcome = await alerts.fire(alert, period.startTime, fired, payload, body);
    const facts = { account: alert.account, alert: alert.id, threshold, ...(forecast !== undefined && { forecast }) };
    if (outcome === 'changed' || outcome === 'full') this.#logNotFired(facts, NOT_FIRED[outcome]);
    if (outcome !== 'fired') return;
    metrics.crossings.inc();
    log.info({ event: 'threshold_reached', ...facts }, 'a threshold was crossed');
  }

  #onRedisError({ id }: Alert, { skipped }: Run): (error: unknown) => void {
    return (error) => {
      skipped.add(id);
      this.#options.metrics.failures.inc();
      this.#logRedis(error);
    };
  }
}

/** The key contains the period, because an alert may cover too much usage in one month but not in the next. */
function aloneKey({ open: [first], period, isForecast }: Query): string {
  return `${first?.alert.id} ${period.startTime} ${isForecast}`;
}

/** A changed alert counts as a new version, so its forecast is compared in the next run, not in the next hour. */
function versionOf({ id, updatedAt }: Alert): string {
  return `${id} ${updatedAt}`;
}

function skip(open: readonly OpenAlert[], { skipped }: Run): void {
  for (const { alert } of open) skipped.add(alert.id);
}

/** Size of an alert's account in a list. The minimum size limits a list to {@link MAX_ACCOUNTS_PER_STATEMENT} accounts. */
function listedSize({ alert }: OpenAlert): number {
  return Math.max(listedBytes(alert.account), MAX_LIST_BYTES / MAX_ACCOUNTS_PER_STATEMENT);
}

function shuffled<T>(list: readonly T[]): T[] {
  return list
    .map((item) => ({ item, rank: Math.random() }))
    .sort((a, b) => a.rank - b.rank)
    .map(({ item }) => item);
}

/** Returns whether value ≥ amount × threshold ÷ 100, computed without a division. */
function isCrossed(value: DecimalText | undefined, { amount }: Alert, threshold: number): boolean {
  if (value === undefined) return false;
  const limit = multiplyDecimals(decimalText(amount), decimalText(String(threshold)));
  return compareDecimals(multiplyDecimals(value, decimalText('100')), limit) >= 0;
}
