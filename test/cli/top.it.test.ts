/** `meterline top` against a real ClickHouse. */
import { beforeAll, expect, it } from '@jest/globals';
import { MS_PER_DAY, MS_PER_HOUR } from '@meterline/catalog';
import { insertUsageEvents, prepareRejectedEvents } from '@meterline/warehouse';
import { pricedEvent } from '../harness/events.js';
import { testDatabase } from '../harness/test-database.js';
import { runCommand } from './run-command.js';

const HOUR = Math.floor(Date.now() / MS_PER_HOUR) * MS_PER_HOUR;
const hourText = (hoursAgo: number) => new Date(HOUR - hoursAgo * MS_PER_HOUR).toISOString().replace('.000', '');

const database = testDatabase();
beforeAll(async () => {
  const events = (accountId: string, timestamps: readonly number[]) =>
    timestamps.map((timestamp) => pricedEvent({ accountId, timestamp }));
  await insertUsageEvents(database.warehouse, [
    ...events('acme', [HOUR, HOUR + 1, HOUR - 2 * MS_PER_HOUR]),
    ...events('globex', [HOUR - 5 * MS_PER_HOUR, HOUR - 5 * MS_PER_HOUR, HOUR - 3 * MS_PER_DAY]),
    ...events('initech', [HOUR - MS_PER_HOUR]),
  ]);
  const rejection = {
    jobId: 'job',
    reason: 'invalid_usage',
    message: 'usage must be a number',
    payload: '{}',
  } as const;
  const rejected = ['globex', '', 'initech', 'globex', 'globex', 'initech'].map((accountId, position) => ({
    ...{ ...rejection, accountId, position },
    receivedAt: position === 5 ? HOUR - 3 * MS_PER_DAY : HOUR,
  }));
  await prepareRejectedEvents(rejected)(database.warehouse);
});

async function top(...args: string[]) {
  const { url, database: name, user = 'default', password = '' } = database.options;
  const clickhouse = { CLICKHOUSE_URL: url, CLICKHOUSE_USER: user, CLICKHOUSE_PASSWORD: password };
  const { stdout, stderr } = await runCommand(['top', ...args], { env: { ...clickhouse, CLICKHOUSE_DATABASE: name } });
  expect(stderr).toBe('');
  return stdout;
}

it('top shows how many events and rejections each account has, and the hour of its newest event', async () => {
  const lines = (await top()).split('\n').map((line) => line.split(/ {2,}/));
  expect(lines).toEqual([
    ['ACCOUNT', 'EVENTS', 'REJECTED', 'NEWEST HOUR'],
    ['acme', '3', '0', hourText(0)],
    ['globex', '2', '3', hourText(5)],
    ['initech', '1', '1', hourText(1)],
    ['(unreadable)', '0', '1', '-'],
    [''],
  ]);
});

it('top sorts by rejections or by the time since the newest event, in a longer window and with a limit', async () => {
  const accounts = async (...args: string[]) =>
    JSON.parse(await top('--json', ...args)).map(({ account }: { account: string }) => account);
  expect(await accounts('--by', 'rejected')).toEqual(['globex', '', 'initech', 'acme']);
  expect(await accounts('--by', 'lag', '--limit', '3')).toEqual(['globex', 'initech', 'acme']);
  const csv = await top('--since', '4d', '--limit', '2', '--csv');
  expect(csv.split('\r\n')).toEqual([
    'account,events,rejected,newestHour',
    `acme,3,0,${hourText(0)}`,
    `globex,3,3,${hourText(5)}`,
    '',
  ]);
});
