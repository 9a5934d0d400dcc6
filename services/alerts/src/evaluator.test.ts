import { afterEach, expect, it, jest } from '@jest/globals';
import type { Alert, AlertSettings } from '@meterline/service/alerts';
import { ClickHouseError, NO_ROLLUPS, type Warehouse } from '@meterline/warehouse';
import { type Logger, pino } from 'pino';
import { Registry } from 'prom-client';
import { ALERT_SETTINGS } from '../../../test/harness/alerts.js';
import { Evaluator } from './evaluator.js';
import { createAlertMetrics } from './metrics.js';

const NOW = new Date('2025-10-15T12:00:00Z');
afterEach(() => {
  jest.restoreAllMocks();
});

/** With these filters, one after the other. */
function alertsOf(account: string, filters: readonly AlertSettings['filters'][]): Alert[] {
  const at = NOW.toISOString();
  return filters.map((each, n) => ({
    ...{ ...ALERT_SETTINGS, id: `${account}-${n}`, account, filters: { ...each } as Alert['filters'] },
    ...{ thresholds: [{ percent: 50, since: at }], secret: 'whsec_', createdAt: at, updatedAt: at },
  }));
}

/** @param response to a statement, by its parameters as text */
function evaluatorOf(
  all: readonly Alert[],
  response: (parameters: string) => void,
  log: Logger = pino({ enabled: false }),
  firedOf: (alert: Alert) => Promise<[]> = async () => [],
): Evaluator {
  const read = async ({ query_params }: { query_params: unknown }) => {
    response(JSON.stringify(query_params));
    return [];
  };
  return new Evaluator({
    alerts: {
      all: async function* () {
        yield [...all];
      },
      firedOf,
      fire: async () => true,
    },
    warehouse: { read } as unknown as Warehouse,
    readRollupState: async () => ({ ...NO_ROLLUPS, droppedBefore: 0 }),
    metrics: createAlertMetrics(new Registry(), { countPending: async () => 0 }),
    log,
  });
}

it('an account whose alerts cost much gets a share of each turn, in the end for all of them, and holds up no other', async () => {
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
  await evaluator.turn(NOW);
  expect(requested.filter((one) => one.includes('victim'))).toHaveLength(1);
  expect(requested.filter((one) => one.includes('greedy'))).toHaveLength(2);
  for (let turn = 0; turn < 200; turn += 1) await evaluator.turn(NOW);
  for (let n = 0; n < 20; n += 1) expect(requested.some((one) => one.includes(`box-${n}.`))).toBe(true);
});

it('an alert whose marks cannot be read keeps no other from being judged, and is told', async () => {
  const judged: string[] = [];
  const log = pino({ enabled: false });
  const error = jest.spyOn(log, 'error');
  const firedOf = async ({ account }: Alert): Promise<[]> => {
    if (account === 'spoilt') throw new SyntaxError('a mark is no JSON');
    return [];
  };
  const all = [...alertsOf('spoilt', [{}]), ...alertsOf('other', [{}])];
  await evaluatorOf(all, (parameters) => judged.push(parameters), log, firedOf).turn(NOW);
  expect(judged.filter((one) => one.includes('other'))).not.toEqual([]);
  expect(error).toHaveBeenCalledWith(expect.objectContaining({ event: 'evaluation_queue_error' }), expect.anything());
});

it('an account with more usage than a statement may read keeps no threshold of another from being judged, and is no outage', async () => {
  const accounts = Array.from({ length: 10 }, (_, n) => `account-${n}`);
  const judged = new Set<string>();
  const all = ['huge', ...accounts].flatMap((account) => alertsOf(account, [{}]));
  let statements = 0;
  const lines: unknown[] = [];
  const log = pino({}, { write: (line: string) => lines.push(JSON.parse(line)) });
  const read = (parameters: string) => {
    statements += 1;
    if (parameters.includes('huge'))
      throw new ClickHouseError({ message: 'limit', code: '159', type: 'TIMEOUT_EXCEEDED' });
    for (const account of accounts) if (parameters.includes(account)) judged.add(account);
  };
  const evaluator = evaluatorOf(all, read, log);
  await evaluator.turn(NOW);
  expect([...judged].sort()).toEqual(accounts);
  // From then on it is asked about alone: a statement for all others, and one for it.
  statements = 0;
  await evaluator.turn(NOW);
  expect(statements).toBe(2);
  expect(lines).toEqual([expect.objectContaining({ event: 'alert_too_large', account: 'huge', alert: 'huge-0' })]);
});

it('an account whose statement takes long to reach the limit keeps no neighbour in it from being judged', async () => {
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
  await evaluator.turn(NOW);
  expect(requested).toEqual([expect.stringContaining('victim')]);
});

it('the metrics of alerts come without what waits in Redis while Redis does not answer', async () => {
  const registry = new Registry();
  createAlertMetrics(registry, { countPending: () => new Promise(() => undefined) });
  expect(await registry.metrics()).not.toMatch(/^meterline_webhooks_pending [0-9]/m);
});
