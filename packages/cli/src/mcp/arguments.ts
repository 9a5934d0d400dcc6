/** The arguments that tools share, as schemas that a model reads, and the flags of commands that they stand for. */
import {
  ACCOUNT_FILTERS,
  bucketStart,
  type EpochMs,
  EXCLUDING_FILTERS,
  MS_PER_DAY,
  nameText,
  plusMonths,
  VALUE_FILTERS,
  type Window,
} from '@meterline/catalog';
import { InvalidArgumentError } from 'commander';
import { z } from 'zod';
import { usageError } from '../failure.js';
import { monthOf, type Span, timeOf } from '../flags.js';
import type { WindowFlags } from '../metrics/query.js';

/** An object that rejects unknown members: a mistyped filter would otherwise select everything. */
export function only<Shape extends z.ZodRawShape>(shape: Shape) {
  const known = Object.keys(shape).join(', ');
  return z.strictObject(shape, {
    error: (issue) =>
      issue.code === 'unrecognized_keys' ? `unknown: ${issue.keys.join(', ')}; use ${known}` : undefined,
  });
}

/** Text that a flag of the same meaning accepts. */
function readBy<Value>(read: (text: string) => Value) {
  return z.string().transform((text, context) => {
    try {
      return read(text);
    } catch (error) {
      if (!(error instanceof InvalidArgumentError)) throw error;
      context.addIssue(error.message);
      return z.NEVER;
    }
  });
}

export const ACCOUNT = {
  account: nameText
    .optional()
    .describe('Account ID, from list_accounts (default: the configured account, or the only one of the API key)'),
};

const days = (count: number): Span => ({ count, unit: 'daily' });

/** Whole hours or days include the present one, as in the commands and on the page. */
const PERIODS = {
  today: () => ({ since: days(1) }),
  yesterday: (now) => ({ from: bucketStart(now, 'daily') - MS_PER_DAY, to: bucketStart(now, 'daily') }),
  last_24_hours: () => ({ since: { count: 24, unit: 'hourly' } }),
  last_7_days: () => ({ since: days(7) }),
  last_30_days: () => ({ since: days(30) }),
  last_90_days: () => ({ since: days(90) }),
  this_month: (now) => ({ month: calendarMonth(now, 0) }),
  last_month: (now) => ({ month: calendarMonth(now, -1) }),
} as const satisfies Record<string, (now: EpochMs) => WindowFlags>;

function calendarMonth(now: EpochMs, months: number): Window {
  const startTime = plusMonths(bucketStart(now, 'monthly'), months);
  return { startTime, endTime: plusMonths(startTime, 1) };
}

export const WINDOW = {
  period: z
    .literal(Object.keys(PERIODS) as (keyof typeof PERIODS)[])
    .optional()
    .describe(
      'A period in UTC; those up to now include the present day. Give only one of period, month, or from with to (default: last_30_days).',
    ),
  month: readBy(monthOf).optional().describe('A calendar month, such as 2026-10'),
  from: readBy(timeOf).optional().describe('Start, inclusive: 2026-10-01 or 2026-10-01T12:00:00Z, in UTC'),
  to: readBy(timeOf).optional().describe('End, exclusive (default: now)'),
};

type WindowArguments = z.output<z.ZodObject<typeof WINDOW>>;

/** @throws CommandError when the arguments contradict each other */
export function windowFlags({ period, month, from, to }: WindowArguments, now: Date): WindowFlags {
  if ([period, month, from ?? to].filter((each) => each !== undefined).length > 1) {
    throw usageError('give only one of period, month, or from with to');
  }
  return period ? PERIODS[period](now.getTime()) : { month, from, to };
}

/** The arguments of the next page: a cursor is of one window, and a period that ends now is another a second later. */
export function sameWindow({ startTime, endTime }: { readonly startTime: string; readonly endTime: string }) {
  return { period: undefined, month: undefined, from: startTime, to: endTime };
}

const several = <Schema extends z.ZodType>(value: Schema) => z.exactOptional(z.array(value).min(1));

const FILTERS = {
  workspace: several(VALUE_FILTERS.workspace),
  resourceType: several(VALUE_FILTERS.resourceType),
  resourceName: several(VALUE_FILTERS.resourceName),
  resourceUuid: several(VALUE_FILTERS.resourceUuid),
  billingDimension: several(VALUE_FILTERS.billingDimension),
  withoutResourceUuid: z.exactOptional(z.literal(true)),
  excludeWorkspace: several(EXCLUDING_FILTERS.excludeWorkspace),
  excludeResourceType: several(EXCLUDING_FILTERS.excludeResourceType),
  excludeResourceName: several(EXCLUDING_FILTERS.excludeResourceName),
  excludeResourceUuid: several(EXCLUDING_FILTERS.excludeResourceUuid),
  excludeBillingDimension: several(EXCLUDING_FILTERS.excludeBillingDimension),
  excludeWithoutResourceUuid: z.exactOptional(z.literal(true)),
};
const FILTERS_TEXT =
  'Count only matching usage. Several values of one filter are alternatives; filters combine with AND.';

export const filters = z.exactOptional(only(FILTERS).describe(FILTERS_TEXT));
export const metricsFilters = z.exactOptional(
  only({
    ...FILTERS,
    account: several(ACCOUNT_FILTERS.account),
    excludeAccount: several(ACCOUNT_FILTERS.excludeAccount),
  }).describe(`${FILTERS_TEXT} account and excludeAccount need allAccounts.`),
);

export const LIMIT = {
  limit: z.int().min(1).max(100).default(20).describe('Rows of a page; a page of large rows has fewer'),
};
export const CURSOR = { cursor: z.string().optional().describe('From nextPage, with all its other arguments') };
export const OFFSET = { offset: z.int().min(0).default(0).describe('Rows to skip') };
