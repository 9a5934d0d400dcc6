import { afterEach, expect, it, jest } from '@jest/globals';
import type { Alert, AlertSettings, AlertStore } from '@meterline/service/alerts';
import { ClickHouseError, NO_ROLLUPS, type Warehouse } from '@meterline/warehouse';
import { type Logger, pino } from 'pino';
import { Registry } from 'prom-client';
import { ALERT_SETTINGS } from '../../../test/harness/alerts.js';
import { MAX_ATTEMPTS } from './deliverer.js';
import { readEnv } from './env.js';
import { Evaluator } from './evaluator.js';
import { createAlertMetrics } from './metrics.js';

const NOW = new Date('2025-10-15T12:00:00Z');
afterEach(() => {
  jest.restoreAllMocks();
});

/** Creates an alert for each of the filters. */
function alertsOf(account: string, filters: readonly AlertSettings['filters'][]): Alert[] {
  const at = NOW.toISOString();
  return filters.map((each, n) => ({
    ...{ ...ALERT_SETTINGS, id: `${account}-${n}`, account, filters: { ...each } as Alert['filters'] },
    ...{ thresholds: [{ percent: 50, since: at }], forecast: [], format: 'standard' as const, to: undefined },
    ...{ secret: 'whsec_', createdAt: at, updatedAt: at },
  }));
}

/** @param response returns the rows of a statement; its argument is the statement's parameters as JSON */
function evaluatorOf(
  all: readonly Alert[],
  response: (parameters: string) => unknown,
  log: Logger = pino({ enabled: false }),
  { firedOf = async () => [], fire = async () => 'fired' }: Partial<Pick<AlertStore, 'firedOf' | 'fire'>> = {},
): Evaluator {
  const read = async ({ query_params }: { query_params: unknown }) => response(JSON.stringify(query_params)) ?? [];
  return new Evaluator({
    alerts: {
      all: async function* () {
        yield [...all];
      },
      ...{ firedOf, fire },
    },
    warehouse: { read } as unknown as Warehouse,
    readRollupState: async () => ({ ...NO_ROLLUPS, droppedBefore: 0 }),
    metrics: createAlertMetrics(new Registry(), { countPending: async () => 0 }),
    log,
  });
}

it('an account with costly alerts gets a share of each evaluation, gets to all of them in the end, and delays no other account', async () => {
  let nowMs = 0;
  jest.spyOn(performance, 'now').mockImplementation(() => nowMs);
  const greedy = alertsOf(
    'greedy',
    Array.from({ length: 20 }, (_, n) => ({ resourceName: [`box-${n}.`] })),
  );
  const requested: string[] = [];
  const evaluator = evaluatorOf([...greedy, ...alertsOf('victim', [{}])], (parameters) => {
    requested.push(parameters);
    if (parameters.includes('greedy')) nowMs += 2_000;
  });
  await evaluator.evaluateAll(NOW);
  expect(requested.filter((one) => one.includes('victim'))).toHaveLength(1);
  expect(requested.filter((one) => one.includes('greedy'))).toHaveLength(2);
  for (let run = 0; run < 200; run += 1) await evaluator.evaluateAll(NOW);
  for (let n = 0; n < 20; n += 1) expect(requested.some((one) => one.includes(`box-${n}.`))).toBe(true);
});

it('an alert with unreadable marks is logged, and does not stop the evaluation of others', async () => {
  const evaluated: string[] = [];
  const log = pino({ enabled: false });
  const error = jest.spyOn(log, 'error');
  const firedOf = async ({ account }: Alert): Promise<[]> => {
    if (account === 'spoilt') throw new SyntaxError('a mark is no JSON');
    return [];
  };
  const all = [...alertsOf('spoilt', [{}]), ...alertsOf('other', [{}])];
  await evaluatorOf(all, (parameters) => evaluated.push(parameters), log, { firedOf }).evaluateAll(NOW);
  expect(evaluated.filter((one) => one.includes('other'))).not.toEqual([]);
  expect(error).toHaveBeenCalledWith(expect.objectContaining({ event: 'evaluation_queue_error' }), expect.anything());
});

it('an account with more usage than a statement may read does not stop the evaluation of others, and is not logged as an outage', async () => {
  const accounts = Array.from({ length: 10 }, (_, n) => `account-${n}`);
  const evaluated = new Set<string>();
  const all = ['huge', ...accounts].flatMap((account) => alertsOf(account, [{}]));
  let statements = 0;
  const lines: unknown[] = [];
  const log = pino({}, { write: (line: string) => lines.push(JSON.parse(line)) });
  const read = (parameters: string) => {
    statements += 1;
    if (parameters.includes('huge'))
      throw new ClickHouseError({ message: 'limit', code: '159', type: 'TIMEOUT_EXCEEDED' });
    for (const account of accounts) if (parameters.includes(account)) evaluated.add(account);
  };
  const evaluator = evaluatorOf(all, read, log);
  await evaluator.evaluateAll(NOW);
  expect([...evaluated].sort()).toEqual(accounts);
  // From now on it has a statement of its own, and the others share one.
  statements = 0;
  await evaluator.evaluateAll(NOW);
  expect(statements).toBe(2);
  expect(lines).toEqual([expect.objectContaining({ event: 'alert_too_large', account: 'huge', alert: 'huge-0' })]);
});

const rejection = (message: string) => new ClickHouseError({ message, code: '1000', type: 'POCO_EXCEPTION' });

it('accounts with long ids are evaluated by statements whose parameters ClickHouse accepts', async () => {
  const accounts = Array.from({ length: 600 }, (_, n) => `${n}-`.padEnd(256, '客'));
  const evaluated = new Set<string>();
  let tooLong = 0;
  const evaluator = evaluatorOf(
    accounts.flatMap((account) => alertsOf(account, [{}])),
    (parameters) => {
      if (Buffer.byteLength(parameters) > 128 * 1024) tooLong += 1;
      for (const account of accounts) if (parameters.includes(account)) evaluated.add(account);
    },
  );
  await evaluator.evaluateAll(NOW);
  expect([evaluated.size, tooLong]).toEqual([600, 0]);
  expect(evaluator.lastRun).toMatchObject({ notJudged: 0 });
});

it('an alert whose statement ClickHouse rejects is logged and counted, and does not stop the evaluation of others', async () => {
  const accounts = Array.from({ length: 10 }, (_, n) => `account-${n}`);
  const evaluated = new Set<string>();
  const lines: unknown[] = [];
  const log = pino({}, { write: (line: string) => lines.push(JSON.parse(line)) });
  const all = ['odd', ...accounts].flatMap((account) => alertsOf(account, [{}]));
  const evaluator = evaluatorOf(
    all,
    (parameters) => {
      if (parameters.includes('odd')) throw rejection('a statement of its own kind');
      for (const account of accounts) if (parameters.includes(account)) evaluated.add(account);
    },
    log,
  );
  await evaluator.evaluateAll(NOW);
  expect([...evaluated].sort()).toEqual(accounts);
  expect(evaluator.lastRun).toMatchObject({ notJudged: 1 });
  expect(lines).toEqual([expect.objectContaining({ event: 'alert_rejected', account: 'odd', alert: 'odd-0' })]);
});

it('an evaluation ends after ten seconds if ClickHouse rejects every statement', async () => {
  let nowMs = 0;
  jest.spyOn(performance, 'now').mockImplementation(() => nowMs);
  let statements = 0;
  const all = Array.from({ length: 500 }, (_, n) => alertsOf(`account-${n}`, [{}])).flat();
  const evaluator = evaluatorOf(all, () => {
    nowMs += 100;
    statements += 1;
    throw rejection('no');
  });
  await evaluator.evaluateAll(NOW);
  expect(statements).toBe(101);
  expect(evaluator.lastRun).toMatchObject({ notJudged: 500 });
});

it('a ClickHouse that rejects every statement is an outage, after which alerts share statements as before', async () => {
  const all = Array.from({ length: 20 }, (_, n) => alertsOf(`account-${n}`, [{}])).flat();
  const lines: unknown[] = [];
  const log = pino({}, { write: (line: string) => lines.push(JSON.parse(line)) });
  let isRejected = true;
  let statements = 0;
  const read = () => {
    statements += 1;
    if (isRejected) throw rejection('Not enough privileges');
  };
  const evaluator = evaluatorOf(all, read, log);
  await evaluator.evaluateAll(NOW);
  expect(lines).toEqual([expect.objectContaining({ event: 'outage' })]);
  [isRejected, statements] = [false, 0];
  await evaluator.evaluateAll(NOW);
  expect(statements).toBe(1);
});

it('an alert that is created again after its rejection and deletion shares a statement', async () => {
  const all = [...alertsOf('odd', [{}]), ...alertsOf('other', [{}])];
  let isRejected = true;
  let requested: string[] = [];
  const evaluator = evaluatorOf(all, (parameters) => {
    requested.push(parameters);
    if (isRejected && parameters.includes('odd')) throw rejection('no');
  });
  await evaluator.evaluateAll(NOW);
  const [odd] = all.splice(0, 1);
  await evaluator.evaluateAll(NOW);
  isRejected = false;
  requested = [];
  if (odd) all.push(odd);
  await evaluator.evaluateAll(NOW);
  expect(requested.filter((one) => one.includes('odd'))).toEqual(requested.filter((one) => one.includes('other')));
});

it.each(['changed', 'full'] as const)(
  'a crossed threshold that Redis does not mark (%s) is logged',
  async (outcome) => {
    const lines: unknown[] = [];
    const log = pino({}, { write: (line: string) => lines.push(JSON.parse(line)) });
    const all = alertsOf('acme', [{}]).map((alert) => ({ ...alert, amount: '0' }));
    await evaluatorOf(all, () => undefined, log, { fire: async () => outcome }).evaluateAll(NOW);
    expect(lines).toEqual([expect.objectContaining({ event: 'threshold_not_fired', alert: 'acme-0', threshold: 50 })]);
  },
);

it('an account whose statement takes long to reach the limit does not stop the others after the next evaluation', async () => {
  let nowMs = 0;
  jest.spyOn(performance, 'now').mockImplementation(() => nowMs);
  const requested: string[] = [];
  const evaluator = evaluatorOf([...alertsOf('huge', [{}]), ...alertsOf('victim', [{}])], (parameters) => {
    if (parameters.includes('huge')) {
      nowMs += 15_000;
      throw new ClickHouseError({ message: 'limit', code: '159', type: 'TIMEOUT_EXCEEDED' });
    }
    requested.push(parameters);
  });
  await evaluator.evaluateAll(NOW);
  await evaluator.evaluateAll(NOW);
  expect(requested).toContainEqual(expect.stringContaining('victim'));
});

it('the metrics lack the number of pending webhooks while Redis is unavailable', async () => {
  const registry = new Registry();
  createAlertMetrics(registry, { countPending: () => new Promise(() => undefined) });
  expect(await registry.metrics()).not.toMatch(/^meterline_webhooks_pending [0-9]/m);
});

it('the attempts to deliver a webhook are spread over 24 hours', () => {
  const { retryMs } = readEnv({}).METERLINE_CONSTANTS;
  const waits = Array.from({ length: MAX_ATTEMPTS - 1 }, (_, attempt) => retryMs * 2 ** attempt);
  const hours = waits.reduce((sum, wait) => sum + wait, 0) / 3_600_000;
  expect(hours).toBeCloseTo(24, 1);
});

/** An evaluator of one alert with the forecast threshold 100, and no other. @returns what fired, and how many statements it sent */
function forecastOf(change: Partial<Alert>, costs: Readonly<Record<number, string>>) {
  const fired: unknown[] = [];
  const [alert] = alertsOf('acme', [{}]).map((each) => ({ ...each, thresholds: [], forecast: [100], ...change }));
  if (!alert) throw new Error('no alert');
  const all = [alert];
  let statements = 0;
  const read = () => {
    statements += 1;
    const amounts = Object.values(costs);
    return [
      {
        values: ['acme'],
        cost: '0',
        usage: '0',
        series: { buckets: Object.keys(costs).map(Number), costs: amounts, usages: amounts },
      },
    ];
  };
  const evaluator = evaluatorOf(all, read, undefined, {
    fire: async (_alert, period, one) => {
      fired.push([period, one]);
      return 'fired';
    },
  });
  return { evaluator, fired, all, statements: () => statements };
}

it('the forecast is judged from the third day of a month on, once an hour, and at once after a change', async () => {
  const { evaluator, all, statements } = forecastOf({}, {});
  const evaluate = async (time: string) => {
    await evaluator.evaluateAll(new Date(`2025-10-${time}Z`));
    return statements();
  };
  expect(await evaluate('02T23:59:59')).toBe(0);
  expect(await evaluate('03T00:00:00')).toBe(1);
  expect(await evaluate('03T00:59:59')).toBe(1);
  expect(await evaluate('03T01:00:00')).toBe(2);
  all.push(...all.splice(0).map((alert) => ({ ...alert, updatedAt: '2025-10-03T01:00:10.000Z' })));
  expect(await evaluate('03T01:00:20')).toBe(3);
  expect(await evaluate('03T01:00:40')).toBe(3);
});

it('a threshold of the forecast fires with the forecast of the page, and the amount so far', async () => {
  // The window begins on 17 September. From 1 October on, each day costs 2: 28 until today, which is expected to cost 2, and 62 in the month.
  const costs = Object.fromEntries(Array.from({ length: 14 }, (_, day) => [14 + day, '2']));
  const reached = forecastOf({ amount: '62' }, costs);
  await reached.evaluator.evaluateAll(NOW);
  const fired = { threshold: 100, value: '28', forecast: '62', firedAt: NOW.toISOString() };
  expect(reached.fired).toEqual([[Date.UTC(2025, 9), fired]]);
  const below = forecastOf({ amount: '62.01' }, costs);
  await below.evaluator.evaluateAll(NOW);
  expect(below.fired).toEqual([]);
});

it('the forecast is not judged again after it fired, without usage it does not fire, and after a failure it is judged again', async () => {
  const none = forecastOf({ amount: '0.01' }, {});
  await none.evaluator.evaluateAll(NOW);
  expect(none.fired).toEqual([]);
  let statements = 0;
  const alert = alertsOf('acme', [{}]).map((each) => ({ ...each, thresholds: [], forecast: [100] }));
  const mark = { threshold: 100, value: '1', forecast: '2', firedAt: NOW.toISOString() };
  const count = () => {
    statements += 1;
    throw new Error('ClickHouse is away');
  };
  await evaluatorOf(alert, count, undefined, { firedOf: async () => [mark] }).evaluateAll(NOW);
  expect(statements).toBe(0);
  const failing = evaluatorOf(alert, count);
  for (let run = 0; run < 2; run += 1) await failing.evaluateAll(NOW);
  expect(statements).toBe(2);
});
