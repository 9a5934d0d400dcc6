/** The tool `query_usage`: what accounts used and what it cost. */
import {
  changeFrom,
  DIMENSIONS,
  groupKey,
  MAX_GROUP_BY_DIMENSIONS,
  METRICS_DIMENSIONS,
  oneOf,
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
import type { AccountSession } from '../connections/api.js';
import { usageError } from '../failure.js';
import { queryOf } from '../metrics/query.js';
import { previousPeriod } from '../metrics/response.js';
import { ACCOUNT, CURSOR, LIMIT, metricsFilters, only, sameWindow, WINDOW, windowFlags } from './arguments.js';
import { accountResult, boundedPage, type Host, nextPage, PAGE, READ_ONLY } from './tool.js';

const DESCRIPTION = `Usage and cost of an account (or of all accounts that the API key may read) in a time window: the total, and \
groups by up to ${MAX_GROUP_BY_DIMENSIONS} dimensions, the most expensive first. Use it for questions such as "what did we spend last \
month", "which resources cost most", "how did cost change", "cost per day".
Costs are USD. Usage is present only with billing_dimension in groupBy, in the unit of the dimension: gbs (GB-seconds), count (events) \
or hours; never add usage of different units. Grouping and filtering by workspace is for admins of the account.
Without groupBy the result has one group, the total. A group without, say, a workspace has usage of several.
Ask for a time series only when you need one: a page then has few groups.`;

const MAX_POINTS = 500;

const inputSchema = only({
  ...ACCOUNT,
  allAccounts: z.boolean().optional().describe('Of all accounts of the API key; then groupBy may have account'),
  ...WINDOW,
  groupBy: z.array(oneOf(METRICS_DIMENSIONS)).max(MAX_GROUP_BY_DIMENSIONS).optional(),
  filters: metricsFilters,
  resolution: oneOf(RESOLUTIONS)
    .optional()
    .describe(
      'Adds a time series to each group, in buckets of this length (weeks begin on Monday). Longest window: hourly 7 days, ' +
        'daily 90 days, weekly 1 year, monthly any.',
    ),
  compare: z
    .literal(true)
    .optional()
    .describe(
      'Adds the cost in the previous period: calendar months for months, else whole weeks earlier. A period that has not ended ' +
        'is compared with an equally long part. First page only.',
    ),
  ...LIMIT,
  ...CURSOR,
});

const cost = (what: string) => z.string().describe(`USD, ${what}`);
const usage = z.string().optional();

const outputSchema = z.object({
  account: z.string().optional().describe('Absent for all accounts'),
  startTime: z.string(),
  endTime: z.string(),
  totalCost: cost('of the whole window, not only of this page'),
  groups: z.array(
    z.object({
      account: z.string().optional(),
      workspace: z.string().optional(),
      resourceType: z.string().optional(),
      resourceName: z.string().optional(),
      resourceUuid: z.string().optional().describe('Empty: usage without a UUID'),
      billingDimension: z.string().optional(),
      cost: cost('of the group'),
      share: z.string().describe('Rounded share of totalCost'),
      usage,
      unit: z.string().optional(),
      previousCost: z.string().optional(),
      change: z.string().optional().describe('Rounded; "new": cost nothing in the previous period'),
      series: z.array(z.object({ timestamp: z.string(), cost: z.string(), usage })).optional(),
    }),
  ),
  costOfOtherGroups: cost('of all groups that are not on this page'),
  previous: z
    .object({
      startTime: z.string(),
      endTime: z.string(),
      distance: z.string(),
      totalCost: z.string(),
      change: z.string(),
    })
    .optional(),
  ...PAGE,
});

export function addQueryUsage(server: McpServer, host: Host): void {
  const config = {
    title: 'Usage and cost',
    description: DESCRIPTION,
    inputSchema,
    outputSchema,
    annotations: READ_ONLY,
  };
  server.registerTool('query_usage', config, (args, { mcpReq: { signal } }) =>
    accountResult(host, args, signal, (session) => queryUsage(session, args, host.context.now(), signal)),
  );
}

async function queryUsage(
  { client, account }: AccountSession,
  args: z.output<typeof inputSchema>,
  now: Date,
  signal: AbortSignal,
): Promise<z.output<typeof outputSchema>> {
  const { allAccounts, resolution, filters: filter = {} } = args;
  if (allAccounts && args.account !== undefined) throw usageError('give account or allAccounts, not both');
  const query = queryOf({ ...args, ...windowFlags(args, now), filter }, now);
  // The coarsest resolution where the series are not shown.
  const sent = { ...query.sent, resolution: resolution ?? ('monthly' as const) };
  const page = await boundedPage(args.limit, (limit) => client.metrics(account, { ...sent, limit }, { signal }));
  const points = page.data[0]?.timeseries.length ?? 0;
  if (resolution && points > MAX_POINTS) {
    throw usageError(
      `a series would have ${points} points, more than ${MAX_POINTS}: choose a shorter window or a coarser resolution`,
    );
  }
  const before = await previousPeriod({ client, account, query, signal }, page.data);
  const { totalCost } = page.summary;
  const group = ({ summary, timeseries, ...names }: MetricsEntry) => {
    const previousCost = before && (before.entries.get(groupKey(names, query.groupBy))?.summary.cost ?? ZERO);
    return {
      ...names,
      ...summary,
      unit: names.billingDimension && DIMENSIONS[names.billingDimension].unit,
      share: shareText(summary.cost, totalCost),
      previousCost,
      change: previousCost && percentChangeText(changeFrom(previousCost, summary.cost)),
      series: resolution && timeseries,
    };
  };
  const next = page.meta.hasMore
    ? { ...args, ...sameWindow(page), compare: undefined, cursor: page.meta.nextCursor }
    : undefined;
  return {
    account: allAccounts ? undefined : account,
    startTime: page.startTime,
    endTime: page.endTime,
    totalCost,
    previous: before && {
      startTime: before.response.startTime,
      endTime: before.response.endTime,
      distance: before.distance,
      totalCost: before.response.summary.totalCost,
      change: percentChangeText(changeFrom(before.response.summary.totalCost, totalCost)),
    },
    groups: page.data.map(group),
    costOfOtherGroups: subtractDecimals(totalCost, sumDecimals(page.data.map(({ summary }) => summary.cost))),
    ...nextPage(next),
  };
}
