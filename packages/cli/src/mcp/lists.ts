/** The tools `list_accounts`, `list_values` and `list_alerts`. */
import { alertUnit } from '@meterline/catalog';
import type { McpServer } from '@modelcontextprotocol/server';
import { z } from 'zod';
import { withApi } from '../connections/api.js';
import { windowOf } from '../metrics/query.js';
import { ACCOUNT, LIMIT, OFFSET, only, WINDOW, windowFlags } from './arguments.js';
import { accountResult, type Host, listPage, PAGE, READ_ONLY, resultOf } from './tool.js';

const PRICE = z.object({ amount: z.string(), per: z.string(), currency: z.string(), effectiveFrom: z.string() });

const TOTAL = { total: z.int().describe('On all pages') };

export function addListAccounts(server: McpServer, host: Host): void {
  const config = {
    title: 'Accounts',
    description: `The accounts that the API key may read, by name, with the role of the key: an admin may group and filter by workspace and \
see single events, a member may not, an operator reads every account. Use it to find the account ID that the other tools take.`,
    inputSchema: only({
      search: z.string().optional().describe('Part of an ID or a name; upper and lower case are the same'),
      ...LIMIT,
      ...OFFSET,
    }),
    outputSchema: z.object({
      ...TOTAL,
      accounts: z.array(
        z.object({
          id: z.string(),
          name: z.string(),
          role: z.string(),
          createdAt: z.string().optional(),
        }),
      ),
      ...PAGE,
    }),
    annotations: READ_ONLY,
  };
  server.registerTool('list_accounts', config, (args, { mcpReq: { signal } }) =>
    resultOf(host, signal, () =>
      withApi(host.context, host.flags, async ({ client }) => {
        const search = args.search?.toLowerCase() ?? '';
        const accounts = (await client.accounts({ signal })).filter(({ id, name }) =>
          `${id}\n${name}`.toLowerCase().includes(search),
        );
        const { data, total, more } = await listPage(accounts, args);
        return { total, accounts: data, ...more };
      }),
    ),
  );
}

export function addListValues(server: McpServer, host: Host): void {
  const config = {
    title: 'Values of filters and groups',
    description: `What the filters of query_usage accept: the resource types that an account used in a window, and every billing dimension \
with its resource type, the unit of its usage (gbs: GB-seconds, count: events, hours) and the price in force for the account: amount USD \
for per units.
For the names of resources, workspaces or UUIDs use query_usage with groupBy.`,
    inputSchema: only({ ...ACCOUNT, ...WINDOW }),
    outputSchema: z.object({
      account: z.string(),
      startTime: z.string(),
      endTime: z.string(),
      resourceTypes: z.array(z.string()).describe('Used in the window'),
      billingDimensions: z.array(
        z.object({ billingDimension: z.string(), resourceType: z.string(), unit: z.string(), price: PRICE.optional() }),
      ),
    }),
    annotations: READ_ONLY,
  };
  server.registerTool('list_values', config, (args, { mcpReq: { signal } }) =>
    accountResult(host, args, signal, async ({ client, account }) => {
      const now = host.context.now();
      const { sent } = windowOf(windowFlags(args, now), now);
      const [resourceTypes, billingDimensions] = await Promise.all([
        client.resourceTypes(account, sent, { signal }),
        client.billingDimensions(account, { signal }),
      ]);
      return { account, ...sent, resourceTypes, billingDimensions };
    }),
  );
}

export function addListAlerts(server: McpServer, host: Host): void {
  const config = {
    title: 'Alerts',
    description: `The alerts of an account, the oldest first: each sends a webhook when the cost or usage of a calendar day or month (UTC) \
reaches a threshold, in percent of its amount. Use it for questions about budgets and about what has fired. The addresses of \
webhooks are left out, because they may hold secrets.`,
    inputSchema: only({ ...ACCOUNT, ...LIMIT, ...OFFSET }),
    outputSchema: z.object({
      account: z.string(),
      ...TOTAL,
      alerts: z.array(
        z.object({
          id: z.string(),
          name: z.string(),
          period: z.string(),
          measure: z.string(),
          amount: z.string().describe('100 percent'),
          unit: z.string().describe('Of amount and value: usd, or that of the billing dimension'),
          thresholds: z.array(z.number()).describe('Percent'),
          filters: z.record(z.string(), z.array(z.string())).describe('The usage that counts'),
          fired: z
            .array(z.object({ threshold: z.number(), value: z.string(), firedAt: z.string() }))
            .describe('In the current period'),
          createdAt: z.string(),
          updatedAt: z.string(),
        }),
      ),
      ...PAGE,
    }),
    annotations: READ_ONLY,
  };
  server.registerTool('list_alerts', config, (args, { mcpReq: { signal } }) =>
    accountResult(host, args, signal, async ({ client, account }) => {
      const { data, total, more } = await listPage(await client.alerts.list(account, { signal }), args);
      const alerts = data.map(({ url: _secret, ...alert }) => ({ ...alert, unit: alertUnit(alert) ?? 'usd' }));
      return { account, total, alerts, ...more };
    }),
  );
}
