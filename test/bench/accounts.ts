/** A month of ten thousand accounts, by account: what an operator's dashboard asks. */
import { formatTimestamp, MS_PER_DAY, type Resolution } from '@meterline/catalog';
import { raiseWatermarks, sealNext } from '@meterline/warehouse';
import { below, type Figure, measure, median, medianOf, WARM_UP_MS } from './figure.js';
import { fillUsage, SANDBOX } from './fill.js';
import type { Bench } from './fixture.js';
import { HttpClient } from './http.js';

const ACCOUNTS = 10_000;
const DAYS = 30;
/** Of an account and a day, each of a workspace of its own. */
const EVENTS_A_DAY = 2;
const DATABASE = 'all_accounts';
const START = Date.UTC(2025, 8, 1);
const END = START + DAYS * MS_PER_DAY;
const GOAL_MS = 300;

const COLUMNS = {
  ...SANDBOX,
  account: `concat('account-', leftPad(toString(number % ${ACCOUNTS}), 6, '0'))`,
  at: `{start: Int64} + intDiv(number, ${ACCOUNTS * EVENTS_A_DAY}) * ${MS_PER_DAY} + number % 3600000`,
  workspace: `concat('workspace-', toString(intDiv(number, ${ACCOUNTS}) % ${EVENTS_A_DAY}))`,
  ...{ resourceName: "'builder'", resourceUuid: "''" },
};
const RESOLUTIONS: readonly Resolution[] = ['monthly', 'daily'];

export const allAccounts: Bench = {
  name: 'all-accounts',
  async run({ fixture, signal }) {
    const product = await fixture.product(DATABASE);
    const { warehouse } = product;
    const rows = ACCOUNTS * EVENTS_A_DAY * DAYS;
    await fillUsage(warehouse, COLUMNS, [], { start: START, rows });
    for (const grain of ['hourly', 'daily'] as const) {
      await raiseWatermarks([warehouse], grain, { sealingUntil: START, sealedUntil: START });
    }
    while (await sealNext([warehouse], END)) signal.throwIfAborted();
    const key = await product.key('platform', 'operator');
    const figures = await fixture.withQuery(product, async ({ url }) => {
      const http = new HttpClient();
      const measured: Figure[] = [];
      for (const resolution of RESOLUTIONS) {
        const window = { startTime: formatTimestamp(START), endTime: formatTimestamp(END) };
        const path = `/v0/metrics?${new URLSearchParams({ ...window, resolution, groupBy: 'account' })}`;
        const runs = await measure(async () => (await http.ok(`${url}${path}`, key)).ms, 15, WARM_UP_MS);
        const what = `${DAYS} days of ${ACCOUNTS.toLocaleString('en')} accounts by account, ${resolution}`;
        measured.push({ ...medianOf(what, 'ms', runs), reach: below(median(runs), GOAL_MS, 'ms') });
      }
      http.close();
      return measured;
    });
    await fixture.drop(DATABASE);
    return figures;
  },
};
