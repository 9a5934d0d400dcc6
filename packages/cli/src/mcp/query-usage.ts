/** The tool `query_usage`: what accounts used and what it cost. */
import {
  changeFrom,
  type DecimalText,
  DIMENSIONS,
  groupKey,
  MAX_GROUP_BY_DIMENSIONS,
  METRICS_DIMENSIONS,
  percentChangeText,
  RESOLUTIONS,
  shareText,
  subtractDecimals,
  sumDecimals,
  ZERO,
} from '@meterline/catalog';
import type { MetricsEntry } from '@meterline/client';
import type { McpServer } from '@modelcontextprotocol/server';
import { z } from 'zod';
import { usageError } from '../failure.js';
import { withApiFlags } from '../flags.js';
import { type QueryFlags, queryOf, withQuery } from '../metrics/query.js';
import { previousPeriod } from '../metrics/response.js';
import type { ApiFlags } from '../settings.js';
import { ACCOUNT, CURSOR, FILTER, flagsOf, LIMIT, nextArguments, only, WINDOW } from './arguments.js';
import { addTool, boundedPage, type Call, forAccount, nextPage, PAGE } from './tool.js';

const DESCRIPTION = `Usage and cost of an account, or of all accounts that the API key may read, in a time window: the total, and groups by \
up to ${MAX_GROUP_BY_DIMENSIONS} dimensions, the most expensive first. For questions such as "what did we spend last month", "which \
resources cost most", "how did cost change", "cost per day".
Costs are USD. Usage is present only with billing_dimension in groupBy, in the unit of the dimension: gbs (GB-seconds), count (events) \
or hours; never add usage of different units. Grouping and filtering by workspace is for admins of the account.
Without groupBy there is one group, the total. Ask for a time series only when you need one: a page then has few groups.`;

const MAX_POINTS = 500;

const inputSchema = only({
  ...ACCOUNT,
  allAccounts: z.boolean().optional().describe('All accounts of the API key; then groupBy may have account'),
  ...WINDOW,
  groupBy: z.array(z.enum(METRICS_DIMENSIONS)).max(MAX_GROUP_BY_DIMENSIONS).optional(),
  ...FILTER,
  resolution: z
    .enum(RESOLUTIONS)
    .optional()
    .describe(
      'Adds a time series to each group, with buckets of this length. Longest window: hourly 7 days, daily 90 days, weekly 1 year.',
    ),
  compare: z
    .boolean()
    .optional()
    .describe('Adds the previous period: whole weeks, or months for months. First page only.'),
  ...LIMIT,
  ...CURSOR,
});

const usage = z.string().optional();
const comparison = { previousCost: z.string().optional(), change: z.string().optional().describe('Rounded') };
const outputSchema = z.object({
  account: z.string().optional().describe('Absent for all accounts'),
  startTime: z.string(),
  endTime: z.string(),
  totalCost: z.string().describe('Of the whole window, on every page'),
  ...comparison,
  previousPeriod: z.object({ startTime: z.string(), endTime: z.string() }).optional(),
  groups: z.array(
    z
      .looseObject({
        cost: z.string(),
        share: z.string().describe('Of totalCost, rounded'),
        usage,
        unit: z.string().optional(),
        ...comparison,
        series: z.array(z.object({ timestamp: z.string(), cost: z.string(), usage })).optional(),
      })
      .describe('Also has the values of its dimensions; one is absent where the usage is of several'),
  ),
  costOfOtherGroups: z.string().describe('Of all groups that are not on this page'),
  ...PAGE,
});

export function addQueryUsage(server: McpServer, host: Pick<Call, 'context' | 'flags'>): void {
  const schemas = { inputSchema, outputSchema };
  addTool(server, host, {
    name: 'query_usage',
    title: 'Usage and cost',
    description: DESCRIPTION,
    ...schemas,
    run: queryUsage,
  });
}

async function queryUsage(call: Call, args: z.output<typeof inputSchema>): Promise<z.output<typeof outputSchema>> {
  const { signal, now } = call;
  const flags = flagsOf<QueryFlags & ApiFlags>((command) => withQuery(withApiFlags(command)), args, now);
  const query = queryOf(flags, now);
  // The coarsest resolution where the series are not shown.
  const sent = { ...query.sent, resolution: args.resolution ?? ('monthly' as const) };
  return forAccount(call, flags, async ({ client, account }) => {
    const page = await boundedPage(args.limit, (limit) => client.metrics(account, { ...sent, limit }, { signal }));
    const points = page.data[0]?.timeseries.length ?? 0;
    if (args.resolution && points > MAX_POINTS) {
      throw usageError(
        `a series would have ${points} points, more than ${MAX_POINTS}: shorten the window, or use a coarser resolution`,
      );
    }
    const before = await previousPeriod({ client, account, query, signal }, page.data);
    const {
      startTime,
      endTime,
      summary: { totalCost },
    } = page;
    const compared = (cost: DecimalText, previousCost: DecimalText | undefined) =>
      before && {
        previousCost: previousCost ?? ZERO,
        change: percentChangeText(changeFrom(previousCost ?? ZERO, cost)),
      };
    const group = ({ summary, timeseries, ...names }: MetricsEntry) => ({
      ...names,
      ...summary,
      share: shareText(summary.cost, totalCost),
      unit: names.billingDimension && DIMENSIONS[names.billingDimension].unit,
      ...compared(summary.cost, before?.entries.get(groupKey(names, query.groupBy))?.summary.cost),
      series: args.resolution && timeseries,
    });
    return {
      account: args.allAccounts ? undefined : account,
      startTime,
      endTime,
      totalCost,
      ...compared(totalCost, before?.response.summary.totalCost),
      previousPeriod: before && { startTime: before.response.startTime, endTime: before.response.endTime },
      groups: page.data.map(group),
      costOfOtherGroups: subtractDecimals(totalCost, sumDecimals(page.data.map(({ summary }) => summary.cost))),
      ...nextPage(nextArguments(args, page, page.meta)),
    };
  });
}
