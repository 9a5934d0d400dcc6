/** A thousand alerts of a thousand accounts: what judging them costs the engine. */
import { setTimeout as delay } from 'node:timers/promises';
import { MS_PER_HOUR } from '@meterline/catalog';
import { AlertStore, periodAt } from '@meterline/service/alerts';
import { ALERT_SETTINGS } from '../harness/alerts.js';
import { adminUrl, scrape } from '../observability/scrape.js';
import { fillUsage, SANDBOX, sealFrom } from './corpus.js';
import { count, figure, limit } from './figure.js';
import type { Bench } from './fixture.js';

const ACCOUNTS = 1_000;
/** As often as in production. */
const TURNS_A_MINUTE = 3;
const EVERY_MS = 2_000;
const TURNS = 10;

const USAGE = {
  at: '{start: Int64} + number * 7919000 % {span: Int64}',
  columns: { ...SANDBOX, account_id: `concat('account-', toString(number % ${ACCOUNTS}))` },
};

export const alerts: Bench = {
  name: 'alerts',
  run: ({ fixture, signal }) =>
    fixture.withProduct('alerts', async (product) => {
      const { redis, warehouse } = product;
      // The month before and this one, of which the last hour is not sealed.
      const now = Date.now();
      const start = periodAt('month', periodAt('month', now).startTime - 1).startTime;
      await fillUsage(warehouse, USAGE, { start, span: now - start, rows: 3_000_000 });
      await sealFrom(warehouse, start, now - MS_PER_HOUR, signal);
      const store = new AlertStore(redis);
      // Made a month ago, so that both months are judged; never reached, so that nothing fires.
      const made = Array.from({ length: ACCOUNTS }, (_, n) =>
        store.create(`account-${n}`, { ...ALERT_SETTINGS, amount: '1000000000' }, new Date(start)),
      );
      await Promise.all(made);
      const constants = JSON.stringify({ evaluateEveryMs: EVERY_MS });
      const service = await product.startAlerts({ ADMIN_PORT: '0', METERLINE_CONSTANTS: constants });
      const url = await adminUrl(service);
      const read = async () => {
        const page = await scrape(url);
        const sums = 'meterline_clickhouse_statement_duration_seconds_sum';
        const statements = [...page.series].filter((name) => name.startsWith(sums));
        return {
          turns: page.value('meterline_alert_turn_duration_seconds_count') ?? 0,
          seconds: statements.reduce((sum, name) => sum + (page.value(name) ?? 0), 0),
        };
      };
      const runs: number[] = [];
      // The first turn warms up.
      for (let last = await read(); runs.length < TURNS; await delay(EVERY_MS / 10)) {
        signal.throwIfAborted();
        const next = await read();
        const turns = next.turns - last.turns;
        if (turns === 0) continue;
        if (last.turns > 0) runs.push(((next.seconds - last.seconds) * 1_000 * TURNS_A_MINUTE) / turns);
        last = next;
      }
      await service.stop();
      return [
        figure(`statements of ${count(ACCOUNTS)} alerts in a minute`, 'ms', runs, { goal: limit('≤', 5_000, 'ms') }),
      ];
    }),
};
