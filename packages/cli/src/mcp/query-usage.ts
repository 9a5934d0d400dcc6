/** The tool `query_usage`, which returns usage and cost. */
import {
  changeFrom,
  type DecimalText,
  groupKey,
  MAX_GROUP_BY_DIMENSIONS,
  METRICS_DIMENSIONS,
  percentChangeText,
  RESOLUTIONS,
  shareText,
  subtractDecimals,
  sumDecimals,
  unitOf,
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
import { addTool, boundedPage, type Call, forAccount, nextPage } from './tool.js';

const DESCRIPTION = `Returns the usage and cost of an account, or of all accounts of the API key, in a time window: the total, and groups by \
up to ${MAX_GROUP_BY_DIMENSIONS} dimensions, most expensive first. For questions such as "what did we spend last month", "which \
resources cost most", "how did cost change", "cost per day".
Costs are in USD. Usage is present only with billing_dimension in groupBy, in the unit of the dimension: gbs (GB-seconds), count (events), \
hours, or a word; never add usage of different units. Grouping and filtering by workspace needs an admin key of the account.
Without groupBy, the only group is the total. A name is omitted if the usage of a group has several. Request a time series only if you \
need one, because pages then have fewer groups.`;

const MAX_POINTS = 500;

const inputSchema = only({
  ...ACCOUNT,
  allAccounts: z
    .boolean()
    .optional()
    .describe('Query all accounts of the API key; allows account in groupBy and filter'),
  ...WINDOW,
  groupBy: z.array(z.enum(METRICS_DIMENSIONS)).optional(),
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
    .describe('Compare with the previous period: calendar months for months, else weeks. First page only.'),
  ...LIMIT,
  ...CURSOR,
});

export function addQueryUsage(server: McpServer, host: Pick<Call, 'context' | 'flags'>): void {
  addTool(server, host, {
    name: 'query_usage',
    title: 'Usage and cost',
    description: DESCRIPTION,
    inputSchema,
    run: queryUsage,
  });
}

async function queryUsage(call: Call, args: z.output<typeof inputSchema>) {
  const { signal, now } = call;
  const flags = flagsOf<QueryFlags & ApiFlags>((command) => withQuery(withApiFlags(command)), args, now);
  const query = queryOf(flags, now);
  // If no series is requested, the coarsest resolution is enough.
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
      unit: names.billingDimension === undefined ? undefined : unitOf(names.billingDimension),
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
