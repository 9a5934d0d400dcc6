import { describe, expect, it } from '@jest/globals';
import { Command } from 'commander';
import { CommandError } from '../failure.js';
import { queryOf, windowOf, withQuery, withWindow } from './query.js';

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
    [['--month', '2027-01'], '2027-01-01T00:00:00Z', '2027-02-01T00:00:00Z', 'daily'],
    [['--from', '2026-11-01'], '2026-11-01T00:00:00Z', '2026-11-21T12:34:56Z', 'daily'],
    [
      ['--from', '2026-10-01T06:00:00.5Z', '--to', '2027-01-01'],
      '2026-10-01T06:00:00.5Z',
      '2027-01-01T00:00:00Z',
      'weekly',
    ],
    [['--from', '2100-12-31', '--to', '2101-01-01'], '2100-12-31T00:00:00Z', '2101-01-01T00:00:00Z', 'hourly'],
  ])('%j is from %s to %s, %s', (args, startTime, endTime, resolution) => {
    expect(windowFor(args)).toMatchObject({ sent: { startTime, endTime }, resolution });
  });

  it.each([
    [[], undefined],
    [['--since', '30d'], undefined],
    [['--month', '2026-11'], 1],
    [['--from', '2026-10-01', '--to', '2026-12-01'], 2],
  ])('%j on the last day of a month of thirty days is meant as so many months: %s', (args, months) => {
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
  ])('%j is wrong usage', (args) => {
    expect(() => windowFor(args)).toThrow(/invalid|cannot be used with/);
  });

  it.each([[['--from', '2026-11-22']], [['--from', '2026-11-02', '--to', '2026-11-02']], [['--since', '900000d']]])(
    '%j contradicts itself',
    (args) => {
      expect(() => windowFor(args)).toThrow(CommandError);
    },
  );
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
])('%j asks for %j', (args, sent) => {
  const times = { startTime: '2026-10-23T00:00:00Z', endTime: '2026-11-21T12:34:56Z' };
  const plain = { ...times, resolution: 'daily', groupBy: [], limit: undefined, cursor: undefined };
  expect(queryOf(flagsOf(withQuery, args), NOW).sent).toEqual({ ...plain, ...sent });
});
