/** `meterline top` against a real ClickHouse. */
import { beforeAll, expect, it } from '@jest/globals';
import { MS_PER_DAY, MS_PER_HOUR } from '@meterline/catalog';
import {
  insertUsageEvents,
  oneServer,
  prepareRejectedEvents,
  type RejectedEvent,
  readOpenRejections,
  settleRejections,
} from '@meterline/warehouse';
import { pricedEvent } from '../harness/events.js';
import { databaseVariables, execute } from '../harness/stack.js';
import { testDatabase } from '../harness/test-database.js';
import { runCommand } from './run-command.js';

const HOUR = Date.UTC(2025, 9, 20, 12);
const NOW = HOUR + 60_000;
const hourText = (hoursAgo: number) => new Date(HOUR - hoursAgo * MS_PER_HOUR).toISOString().replace('.000', '');

const database = testDatabase();
beforeAll(async () => {
  const { warehouse } = database;
  await execute(warehouse, 'SYSTEM STOP MERGES usage_events');
  const events = (accountId: string, timestamps: readonly number[]) =>
    timestamps.map((timestamp) => pricedEvent({ accountId, timestamp }));
  const corrected = {
    accountId: 'initech',
    timestamp: HOUR - MS_PER_HOUR,
    eventId: '018f0000-0000-7000-8000-000000000001',
  };
  await insertUsageEvents(warehouse, [
    ...events('acme', [HOUR, HOUR + 1, HOUR - 2 * MS_PER_HOUR]),
    ...events('globex', [HOUR - 5 * MS_PER_HOUR, HOUR - 5 * MS_PER_HOUR, HOUR - 3 * MS_PER_DAY]),
    ...events('hooli', [HOUR - 10 * MS_PER_DAY]),
    pricedEvent(corrected),
  ]);
  await insertUsageEvents(warehouse, [pricedEvent({ ...corrected, revision: 1, voided: true })]);

  const rejection = {
    jobId: 'job',
    reason: 'invalid_usage',
    message: 'usage must be a number',
    payload: '{}',
  } as const;
  const reject = (...rejections: (Pick<RejectedEvent, 'accountId' | 'position'> & { receivedAt?: number })[]) =>
    prepareRejectedEvents(rejections.map((fields) => ({ ...rejection, receivedAt: HOUR, ...fields })))(warehouse);
  const settled = [6, 7, 8].map((position) => ({ accountId: 'acme', position }));
  await reject(...settled);
  await settleRejections(oneServer(warehouse), await readOpenRejections(warehouse, {}, { limit: 10 }), 'discarded');
  await execute(warehouse, 'SYSTEM STOP MERGES rejected_events');
  // A job that is delivered again after its rejections were settled stores them again.
  await reject(...settled);
  const twice = { accountId: 'globex', position: 0 };
  await reject(twice, { accountId: '', position: 1 }, { accountId: 'initech', position: 2 });
  await reject(twice, { accountId: 'globex', position: 3 }, { accountId: 'globex', position: 4 });
  await reject({ accountId: 'initech', position: 5, receivedAt: HOUR - 3 * MS_PER_DAY });
});

const NOTE = 'Events count by the hour of their timestamp, not of their receipt.\n';
const WORKERS_ONLY =
  'Counts only events that workers rejected. The collector stores no event that it rejects: see "rejected" in its log event "request", and its metric meterline_collector_rejected_events_total.\n';

async function top(...args: string[]) {
  const { stdout, stderr } = await runTop(...args);
  expect(stderr).toBe(args.some((arg) => ['--json', '--csv'].includes(arg)) ? '' : NOTE);
  return stdout;
}

async function runTop(...args: string[]) {
  return runCommand(['top', ...args], { env: databaseVariables(database.options), now: NOW });
}

it('top shows how many stored revisions and open rejections each account has, and the hour of its newest event', async () => {
  const lines = (await top()).split('\n').map((line) => line.split(/ {2,}/));
  expect(lines).toEqual([
    ['ACCOUNT', 'REVISIONS', 'REJECTED', 'NEWEST HOUR'],
    ['acme', '3', '0', hourText(0)],
    ['globex', '2', '3', hourText(5)],
    ['initech', '2', '1', hourText(1)],
    ['(unreadable)', '0', '1', '-'],
    [''],
  ]);
});

it('top sorts by rejections or by the time since the newest event, in a longer window and with a limit', async () => {
  const accounts = async (...args: string[]) =>
    JSON.parse(await top('--json', ...args)).map(({ account }: { account: string }) => account);
  expect(await accounts('--by', 'rejected')).toEqual(['globex', '', 'initech']);
  expect(await accounts('--by', 'lag', '--since', '24h', '--limit', '3')).toEqual(['globex', 'initech', 'acme']);
  const csv = await top('--since', '4d', '--limit', '2', '--csv');
  expect(csv.split('\r\n')).toEqual([
    'account,revisions,rejected,newestHour',
    `acme,3,0,${hourText(0)}`,
    `globex,3,3,${hourText(5)}`,
    '',
  ]);
});

it('top by rejections lists only accounts with rejections, and names where to find those of the collector', async () => {
  const { stdout, stderr } = await runTop('--by', 'rejected');
  expect(stdout.split('\n').map((line) => line.split(/ {2,}/)[0])).toEqual([
    ...['ACCOUNT', 'globex', '(unreadable)', 'initech', ''],
  ]);
  expect(stderr).toBe(WORKERS_ONLY);
  const later = await runCommand(['top', '--by', 'rejected', '--since', '1h'], {
    env: databaseVariables(database.options),
    now: NOW + MS_PER_HOUR,
  });
  expect(later).toEqual({ code: 0, stdout: 'No rejections.\n', stderr: WORKERS_ONLY });
});

it('top by lag starts with an account that has been silent for days', async () => {
  const lines = (await top('--by', 'lag')).split('\n').map((line) => line.split(/ {2,}/)[0]);
  expect(lines).toEqual(['ACCOUNT', 'hooli', 'globex', 'initech', 'acme', '(unreadable)', '']);
});
