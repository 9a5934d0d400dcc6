/** The tool `explain_amount`: the events behind a figure. */
import { DIMENSIONS } from '@meterline/catalog';
import type { McpServer } from '@modelcontextprotocol/server';
import { z } from 'zod';
import { costOf } from '../commands/explain.js';
import type { AccountSession } from '../connections/api.js';
import { eventsQueryOf } from '../metrics/query.js';
import { ACCOUNT, CURSOR, filters, LIMIT, only, sameWindow, WINDOW, windowFlags } from './arguments.js';
import { accountResult, boundedPage, type Host, nextPage, PAGE, READ_ONLY } from './tool.js';

const DESCRIPTION = `The single usage events behind a cost or usage figure, with the price that each was charged: cost = usage × \
price.amount ÷ price.per. With the window and filters of the figure, the costs of all pages add up to it. Use it when somebody asks why a \
figure is what it is, after query_usage has found the figure; narrow it to a resource and a short window first, because an account may have \
millions of events. Needs an API key of an admin of the account, or of an operator.
history has what an event replaced: earlier revisions and prices. priceBook is the version of the price list.`;

const inputSchema = only({
  ...ACCOUNT,
  ...WINDOW,
  filters,
  includeVoided: z.boolean().optional().describe('Also events that were voided; they do not count'),
  ...LIMIT,
  ...CURSOR,
});

const REVISION = {
  timestamp: z.string(),
  workspace: z.string(),
  resourceType: z.string(),
  resourceName: z.string(),
  resourceUuid: z.string(),
  billingDimension: z.string(),
  usage: z.string(),
  cost: z.string().describe('USD'),
  voided: z.boolean(),
  revision: z.number(),
  priceRevision: z.number(),
  priceBook: z.number(),
  price: z.object({ amount: z.string(), per: z.string(), effectiveFrom: z.string() }).optional(),
};

const outputSchema = z.object({
  account: z.string(),
  startTime: z.string(),
  endTime: z.string(),
  costOfPage: z.string().describe('USD, of the events on this page that count'),
  events: z.array(
    z.object({
      eventId: z.string(),
      ...REVISION,
      unit: z.string().describe('Of usage'),
      history: z.array(z.looseObject({})).describe('What the event replaced, the newest first, in the same form'),
    }),
  ),
  ...PAGE,
});

export function addExplainAmount(server: McpServer, host: Host): void {
  const config = { title: 'Events behind a figure', description: DESCRIPTION, inputSchema, outputSchema };
  server.registerTool('explain_amount', { ...config, annotations: READ_ONLY }, (args, { mcpReq: { signal } }) =>
    accountResult(host, args, signal, (session) => explainAmount(session, args, host.context.now(), signal)),
  );
}

async function explainAmount(
  { client, account }: AccountSession,
  args: z.output<typeof inputSchema>,
  now: Date,
  signal: AbortSignal,
): Promise<z.output<typeof outputSchema>> {
  const query = eventsQueryOf({ ...args, ...windowFlags(args, now), filter: args.filters ?? {} }, now);
  const { data, meta } = await boundedPage(args.limit, (limit) =>
    client.events(account, { ...query, limit }, { signal }),
  );
  const { startTime, endTime } = query;
  return {
    account,
    startTime,
    endTime,
    costOfPage: costOf(data),
    events: data.map((event) => ({ ...event, unit: DIMENSIONS[event.billingDimension].unit })),
    ...nextPage(meta.hasMore ? { ...args, ...sameWindow(query), cursor: meta.nextCursor } : undefined),
  };
}
