/** Defines arguments that the tools share. Converts arguments to flags, so that the parsers of the command line can parse them. */
import { bucketStart, formatTimestamp, MS_PER_DAY, plusMonths } from '@meterline/catalog';
import { Command } from 'commander';
import { z } from 'zod';
import { usageError } from '../failure.js';
import { flagName, monthText } from '../flags.js';

/** Returns a schema that rejects unknown arguments. Otherwise, a tool would ignore a mistyped filter and select everything. */
export function only<Shape extends z.ZodRawShape>(shape: Shape) {
  const known = Object.keys(shape).join(', ');
  return z.strictObject(shape, {
    error: (issue) =>
      issue.code === 'unrecognized_keys' ? `unknown: ${issue.keys.join(', ')}; use ${known}` : undefined,
  });
}

const PERIODS = {
  today: () => ({ since: '1d' }),
  yesterday: (today) => ({ from: formatTimestamp(today - MS_PER_DAY), to: formatTimestamp(today) }),
  last_24_hours: () => ({ since: '24h' }),
  last_7_days: () => ({ since: '7d' }),
  last_30_days: () => ({ since: '30d' }),
  last_90_days: () => ({ since: '90d' }),
  this_month: (today) => ({ month: monthText(today) }),
  last_month: (today) => ({ month: monthText(plusMonths(bucketStart(today, 'monthly'), -1)) }),
} as const satisfies Record<string, (today: number) => object>;

export const ACCOUNT = {
  account: z
    .string()
    .optional()
    .describe('Account ID, from list_accounts (default: the configured account, or the only one of the API key)'),
};
export const WINDOW = {
  period: z
    .literal(Object.keys(PERIODS) as (keyof typeof PERIODS)[])
    .optional()
    .describe(
      'Give one of period, month, or from with to (default: last_30_days). last_7_days and so on are UTC days and include today.',
    ),
  month: z.string().optional().describe('A calendar month, such as 2026-10'),
  from: z.string().optional().describe('Start, inclusive: 2026-10-01 or 2026-10-01T12:00:00Z, in UTC'),
  to: z.string().optional().describe('End, exclusive (default: now)'),
};
export const FILTER = {
  filter: z
    .array(z.string())
    .optional()
    .describe(
      'Count only matching usage: name=value or name!=value, such as resourceType=agent. Names: workspace, resourceType, ' +
        'resourceName, resourceUuid, billingDimension. Values of one name are alternatives.',
    ),
};
export const LIMIT = {
  limit: z.int().min(1).max(100).default(20).describe('Rows of a page; a page of large rows has fewer'),
};
export const CURSOR = { cursor: z.string().optional().describe('From nextPage, with all its other arguments') };
export const OFFSET = { offset: z.int().min(0).default(0).describe('Rows to skip') };

type Arguments = Readonly<Record<string, unknown>> & z.output<z.ZodObject<typeof WINDOW>>;

/** Parses arguments as the flags that `withFlags` adds. @throws CommandError or CommanderError if an argument is invalid or conflicts */
export function flagsOf<Flags extends object>(
  withFlags: (command: Command) => Command,
  { period, ...args }: Arguments,
  now: Date,
): Flags {
  if (period && (args.month ?? args.from ?? args.to) !== undefined) {
    throw usageError('give only one of period, month, or from with to');
  }
  const given: Readonly<Record<string, unknown>> = {
    ...args,
    ...(period && PERIODS[period](bucketStart(now.getTime(), 'daily'))),
  };
  const argv = Object.entries(given).flatMap(([name, value]) => {
    const flag = flagName(name);
    return [value]
      .flat()
      .flatMap((each) => (each === undefined || each === false ? [] : each === true ? flag : `${flag}=${each}`));
  });
  const command = withFlags(new Command().exitOverride().configureOutput({ writeErr: () => undefined }));
  return command.parse(argv, { from: 'user' }).opts<Flags>();
}

/** Returns the arguments of the next page. They contain the exact window, because a cursor is valid for one window only. */
export function nextArguments(
  args: object,
  { startTime, endTime }: { readonly startTime: string; readonly endTime: string },
  { hasMore, nextCursor }: { readonly hasMore: boolean; readonly nextCursor: string },
): Readonly<Record<string, unknown>> | undefined {
  const window = { period: undefined, month: undefined, from: startTime, to: endTime };
  return hasMore ? { ...args, ...window, compare: undefined, cursor: nextCursor } : undefined;
}
