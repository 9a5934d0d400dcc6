/** The tool `explain_amount`, which lists the events behind an amount. */
import { EVENT_SORT_KEYS, EVENT_SORT_ORDERS, unitOf } from '@meterline/catalog';
import type { McpServer } from '@modelcontextprotocol/server';
import { z } from 'zod';
import { costOf, withEvents } from '../commands/user/explain.js';
import { type EventsFlags, eventsQueryOf } from '../metrics/query.js';
import type { ApiFlags } from '../settings.js';
import { ACCOUNT, CURSOR, FILTER, flagsOf, LIMIT, nextArguments, only, WINDOW } from './arguments.js';
import { addTool, boundedPage, type Call, forAccount, nextPage } from './tool.js';

const DESCRIPTION = `Lists the usage events behind a cost or usage amount, with the price of each: cost = usage × price.amount ÷ \
price.per. With the window and filters of the amount, the costs of all pages add up to it. Use it after query_usage has found the \
amount, narrowed to a resource and a short window: an account may have millions of events. Needs the API key of an admin of the \
account, or of an operator. history contains the earlier revisions and prices that an event replaced.`;

export function addExplainAmount(server: McpServer, host: Pick<Call, 'context' | 'flags'>): void {
  addTool(server, host, {
    name: 'explain_amount',
    title: 'Events behind an amount',
    description: DESCRIPTION,
    inputSchema: only({
      ...ACCOUNT,
      ...WINDOW,
      ...FILTER,
      includeVoided: z.boolean().optional().describe('Include voided events, which do not count'),
      orderBy: z
        .enum(EVENT_SORT_KEYS)
        .optional()
        .describe(
          'timestamp is by hour (default), cost is by cost. By cost, an event whose cost changes between two pages may be on both or on none',
        ),
      order: z.enum(EVENT_SORT_ORDERS).optional().describe('asc (default) or desc'),
      ...LIMIT,
      ...CURSOR,
    }),
    run: async (call, args) => {
      const flags = flagsOf<EventsFlags & ApiFlags>(withEvents, args, call.now);
      const query = eventsQueryOf(flags, call.now);
      const { startTime, endTime } = query;
      return forAccount(call, flags, async ({ client, account }) => {
        const read = (limit: number) => client.events(account, { ...query, limit }, { signal: call.signal });
        const { data, meta } = await boundedPage(args.limit, read);
        const events = data.map((event) => ({ ...event, unit: unitOf(event.billingDimension) }));
        return {
          account,
          startTime,
          endTime,
          costOfPage: costOf(data),
          events,
          ...nextPage(nextArguments(args, query, meta)),
        };
      });
    },
  });
}
