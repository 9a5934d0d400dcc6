import { describe, expect, it } from '@jest/globals';
import { Command } from 'commander';
import { CommandError } from '../command.js';
import { windowOf, withWindow } from './query.js';

const NOW = new Date('2026-11-21T12:34:56.789Z');

function windowFor(...args: string[]) {
  const command = withWindow(new Command().exitOverride().configureOutput({ writeErr: () => undefined }));
  command.parse(args, { from: 'user' });
  return windowOf(command.opts(), NOW);
}

describe('the window', () => {
  it.each([
    [[], '2026-10-22T12:34:56Z', '2026-11-21T12:34:56Z'],
    [['--since', '90m'], '2026-11-21T11:04:56Z', '2026-11-21T12:34:56Z'],
    [['--since', '7d'], '2026-11-14T12:34:56Z', '2026-11-21T12:34:56Z'],
    [['--since', '2w', '--to', '2026-10-15'], '2026-10-01T00:00:00Z', '2026-10-15T00:00:00Z'],
    [['--from', '2026-11-01'], '2026-11-01T00:00:00Z', '2026-11-21T12:34:56Z'],
    [['--from', '2026-10-01T06:00:00.5Z', '--to', '2027-01-01'], '2026-10-01T06:00:00.5Z', '2027-01-01T00:00:00Z'],
    [['--from', '2100-12-31', '--to', '2101-01-01'], '2100-12-31T00:00:00Z', '2101-01-01T00:00:00Z'],
  ])('%j is from %s to %s', (args, startTime, endTime) => {
    expect(windowFor(...args)).toEqual({ startTime, endTime });
  });

  it.each([
    [['--since', '0d']],
    [['--since', '30']],
    [['--since', 'week']],
    [['--from', 'yesterday']],
    [['--from', '2026-02-30']],
    [['--from', '2026-10-01T00:00:00+02:00']],
  ])('%j is wrong usage', (args) => {
    expect(() => windowFor(...args)).toThrow(/invalid/);
  });

  it.each([
    [['--since', '1d', '--from', '2026-11-01']],
    [['--from', '2026-11-22']],
    [['--from', '2026-11-02', '--to', '2026-11-02']],
    [['--since', '900000d']],
  ])('%j contradicts itself', (args) => {
    expect(() => windowFor(...args)).toThrow(CommandError);
  });
});
