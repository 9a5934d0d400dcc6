/** The flags of `meterline metrics`, its table, its watch mode, and the output that it shares with other commands. */
import { PassThrough } from 'node:stream';
import { describe, expect, it } from '@jest/globals';
import { decimalText } from '@meterline/catalog';
import type { MetricsEntry } from '@meterline/client';
import { Command } from 'commander';
import { watch } from '../commands/user/metrics.js';
import { CommandError, EXIT_CODES } from '../failure.js';
import { displayWidth } from '../output/table.js';
import { WaitingOutput, writeWhole } from '../output/whole-output.js';
import { queryOf, windowOf, withQuery, withWindow } from './query.js';
import { type Report, type ReportLayout, reportText, sparkline } from './report.js';

const NOW = new Date('2026-11-21T12:34:56.789Z');

function flagsOf(add: (command: Command) => Command, args: readonly string[]) {
  const command = add(new Command().exitOverride().configureOutput({ writeErr: () => undefined }));
  return command.parse(args, { from: 'user' }).opts();
}
const windowFor = (args: readonly string[]) => windowOf(flagsOf(withWindow, args), NOW);

describe('the window', () => {
  it.each([
    [[], '2026-10-23T00:00:00Z', '2026-11-21T12:34:56Z', 'daily'],
    [['--since', '30d'], '2026-10-23T00:00:00Z', '2026-11-21T12:34:56Z', 'daily'],
    [['--since', '7d'], '2026-11-15T00:00:00Z', '2026-11-21T12:34:56Z', 'daily'],
    [['--since', '24h'], '2026-11-20T13:00:00Z', '2026-11-21T12:34:56Z', 'hourly'],
    [['--since', '90m'], '2026-11-21T11:04:56Z', '2026-11-21T12:34:56Z', 'hourly'],
    [['--since', '2w', '--to', '2026-10-15'], '2026-10-01T00:00:00Z', '2026-10-15T00:00:00Z', 'daily'],
    [['--since', '2d', '--to', '2026-10-15T06:00:00Z'], '2026-10-14T00:00:00Z', '2026-10-15T06:00:00Z', 'hourly'],
    [['--month', '2026-10'], '2026-10-01T00:00:00Z', '2026-11-01T00:00:00Z', 'daily'],
    [['--month', '2026-11'], '2026-11-01T00:00:00Z', '2026-11-21T12:34:56Z', 'daily'],
    [['--from', '2026-11-01'], '2026-11-01T00:00:00Z', '2026-11-21T12:34:56Z', 'daily'],
    [
      ['--from', '2026-10-01T06:00:00.5Z', '--to', '2027-01-01'],
      '2026-10-01T06:00:00.5Z',
      '2027-01-01T00:00:00Z',
      'weekly',
    ],
    [['--from', '2100-12-31', '--to', '2101-01-01'], '2100-12-31T00:00:00Z', '2101-01-01T00:00:00Z', 'hourly'],
  ])('the window of %j is from %s to %s, %s', (args, startTime, endTime, resolution) => {
    expect(windowFor(args)).toMatchObject({ sent: { startTime, endTime }, resolution });
  });

  it.each([
    [['--from', '2026-12-01'], '2026-12-01T00:00:00Z'],
    [['--from', '2026-12-01T00:00:00.2Z'], '2026-12-01T00:00:00.2Z'],
    [['--month', '2026-12'], '2026-12-01T00:00:00Z'],
  ])(
    'a window of %j that starts within the current second is one second long and can be compared',
    (args, startTime) => {
      const now = new Date('2026-12-01T00:00:00.2Z');
      const flags = { ...flagsOf(withWindow, args), compare: true } as const;
      expect(queryOf(flags, now)).toMatchObject({
        sent: { startTime, endTime: '2026-12-01T00:00:01Z' },
        compared: { sent: { startTime: expect.any(String) } },
      });
    },
  );

  it.each([
    [[], undefined],
    [['--since', '30d'], undefined],
    [['--month', '2026-11'], 1],
    [['--from', '2026-10-01', '--to', '2026-12-01'], 2],
  ])('on the last day of a month of 30 days, the window of %j counts as this number of months: %s', (args, months) => {
    const window = windowOf(flagsOf(withWindow, args), new Date('2026-11-30T12:00:00Z'));
    expect(window.months).toBe(months);
  });

  it.each([
    [['--since', '0d']],
    [['--since', '30']],
    [['--since', 'week']],
    [['--month', '2026-13']],
    [['--month', 'november']],
    [['--month', '2026-10', '--to', '2026-10-15']],
    [['--from', 'yesterday']],
    [['--from', '2026-10-01T00:00:00+02:00']],
  ])('the window of %j is a usage error', (args) => {
    expect(() => windowFor(args)).toThrow(/invalid|cannot be used with/);
  });

  it.each([
    [['--from', '2026-11-22']],
    [['--month', '2026-12']],
    [['--from', '2026-11-02', '--to', '2026-11-02']],
    [['--since', '900000d']],
  ])('the window of %j is empty, in the future or too early, which is an error', (args) => {
    expect(() => windowFor(args)).toThrow(CommandError);
  });
});

it.each([
  [['--filter', 'resourceName=box', '--resource-name', 'a=b'], { resourceName: ['box', 'a=b'] }],
  [['--filter', 'resourceName!=box', '--filter', 'excludeResourceName=b'], { excludeResourceName: ['box', 'b'] }],
  [['--without-resource-uuid'], { withoutResourceUuid: true }],
  [['--filter', 'withoutResourceUuid=false'], { withoutResourceUuid: false }],
  [['--filter', 'withoutResourceUuid!=true'], { excludeWithoutResourceUuid: true }],
  [
    ['--workspace', '東京', '--resource-type', 'agent', '--resource-type', 'job', '--resource-uuid', 'u'],
    { workspace: ['東京'], resourceType: ['agent', 'job'], resourceUuid: ['u'] },
  ],
  [
    ['--billing-dimension', 'volume_storage_gbs', '--filter', 'billingDimension!=job_compute_runtime_gbs'],
    { billingDimension: ['volume_storage_gbs'], excludeBillingDimension: ['job_compute_runtime_gbs'] },
  ],
  [['--all-accounts', '--filter', 'account=a', '--filter', 'account!=b'], { account: ['a'], excludeAccount: ['b'] }],
  [['--group-by', 'resource_type', '--group-by', 'workspace'], { groupBy: ['workspace', 'resource_type'] }],
  [['--resolution', 'monthly', '--limit', '5'], { resolution: 'monthly', limit: 5 }],
])('the flags %j are sent as %j', (args, sent) => {
  const times = { startTime: '2026-10-23T00:00:00Z', endTime: '2026-11-21T12:34:56Z' };
  const plain = { ...times, resolution: 'daily', groupBy: [], limit: undefined, cursor: undefined };
  expect(queryOf(flagsOf(withQuery, args), NOW).sent).toEqual({ ...plain, ...sent });
});

const WIDE: ReportLayout = { width: undefined, style: (_, text) => text, isExact: false };

function entry(resourceName: string, cost: string, costs: readonly string[]): MetricsEntry {
  return {
    workspace: 'production',
    resourceType: 'agent',
    resourceName,
    summary: { cost: decimalText(cost) },
    timeseries: costs.map((amount, hour) => ({
      timestamp: `2025-10-01T${String(hour).padStart(2, '0')}:00:00Z`,
      cost: decimalText(amount),
    })),
  };
}

function report(entries: readonly MetricsEntry[], totalCost: string): Report {
  const response = {
    startTime: '2025-10-01T00:00:00Z',
    endTime: '2025-10-01T12:00:00Z',
    resolution: 'hourly',
    summary: { totalCost: decimalText(totalCost) },
    meta: { hasMore: false, nextCursor: '' },
  } as const;
  return { account: 'acme', groupBy: ['resource_name'], hidesWorkspace: false, response, entries, before: undefined };
}

const HALF_DAY = ['1', '2', '3', '4', '5', '6', '7', '8', '0', '0', '0', '0'];
const ENTRIES = [
  entry('support', '36', HALF_DAY),
  entry('a-resource-with-quite-a-long-name', '0.004', ['0.004', ...HALF_DAY.slice(1).map(() => '0')]),
];

it('a table on a narrow terminal drops fields that were not requested, and then shortens names', () => {
  const lines = reportText(report(ENTRIES, '36.004'), { ...WIDE, width: 64 })
    .split('\n')
    .slice(2);
  expect(lines).toEqual([
    'RESOURCE                             COST   SHARE  TREND',
    'support                            $36.00  >99.9%  ▁▂▃▄▅▆▇█····',
    'a-resource-with-quite-a-long-name  $0.004   <0.1%  █···········',
    'Total                              $36.00  100.0%',
  ]);
  const narrow = reportText(report(ENTRIES, '36.004'), { ...WIDE, width: 40 })
    .split('\n')
    .slice(2);
  expect(Math.max(...narrow.map(displayWidth))).toBeLessThanOrEqual(40);
  expect(narrow[2]).toMatch(/^a-resou\S*… +\$0\.004 +<0\.1% +█·+$/);
});

it.each<[number[], number, string]>([
  [[0, 1, 2, 3, 4, 5, 6, 7, 8], 40, '·▁▂▃▄▅▆▇█'],
  [[0.0000001, 1_000_000], 40, '▁█'],
  [[0, 0], 40, '··'],
  [[], 40, ''],
  [[1, 1, 4, 4, 0, 0], 3, '▂█·'],
  [[1, 2, 3], 0, '█'],
])('the values %j drawn in %d characters are %s', (values, width, expected) => {
  expect(sparkline(values, width)).toBe(expected);
});

/** Watches a query with these results, one per call, and interrupts the watch after the last. */
async function watched(results: readonly (string | Error)[]): Promise<readonly string[]> {
  const printed: string[] = [];
  const stderr = new PassThrough({ encoding: 'utf8' }).on('data', (line: string) => printed.push(line));
  const interruption = new AbortController();
  const remaining = [...results];
  await watch({ stderr }, 0.001, interruption.signal, async () => {
    const result = remaining.shift() ?? '';
    if (remaining.length === 0) interruption.abort();
    if (result instanceof Error) throw result;
    printed.push(result);
  });
  return printed;
}

it('a watch prints each result, and continues after the service was unavailable', async () => {
  const unavailable = new CommandError('cannot reach the API\nhint', EXIT_CODES.unavailable);
  const retry = 'meterline: cannot reach the API\nhint; retrying in 0.001 s\n';
  expect(await watched(['a', unavailable, 'b'])).toEqual(['a', retry, 'b']);
});

it('a watch ends with any other error', async () => {
  const denied = new CommandError('not allowed', EXIT_CODES.notAllowed);
  await expect(watched([denied, 'a'])).rejects.toBe(denied);
});

it('an interruption of a request ends the watch without an error', async () => {
  expect(await watched(['a', new Error('aborted')])).toEqual(['a']);
});

it('repeated results leave no listeners on the output', async () => {
  const stdout = new PassThrough();
  for (let count = 0; count < 12; count += 1)
    await writeWhole({ stdout }, undefined, (file) => file.appendFile('{}\n'));
  expect(stdout.read().toString()).toBe('{}\n'.repeat(12));
  expect([stdout.listenerCount('error'), stdout.listenerCount('close'), stdout.listenerCount('drain')]).toEqual([
    0, 0, 0,
  ]);
});

it.each([
  ['small', 3],
  ['large', 5 * 1024 * 1024],
])('a %s result that was truncated and continued is printed whole', async (_size, length) => {
  const stdout = new PassThrough({ highWaterMark: 32 * 1024 * 1024 });
  await writeWhole({ stdout }, undefined, async (output) => {
    await output.appendFile('a'.repeat(length));
    await output.appendFile('b'.repeat(length));
    await output.truncate(length + 1);
    await output.appendFile('c');
    expect(output.size).toBe(length + 2);
  });
  expect(stdout.read().toString() === `${'a'.repeat(length)}bc`).toBe(true);
});

it('a large result fails without a folder for its temp file, and a small result needs none', async () => {
  const output = new WaitingOutput(() => Promise.reject(new Error('no folder')));
  await output.appendFile('a'.repeat(1024 * 1024));
  await expect(output.appendFile('b'.repeat(8 * 1024 * 1024))).rejects.toThrow('no folder');
});
